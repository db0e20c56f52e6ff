#include "server/tokens.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace fixpoint::server {
namespace {

TokenEntry entry_of(const std::string& id, const std::string& secret) {
  TokenEntry entry{.sha256 = hash_secret(secret)};
  entry.principal = {.tenant = "acme", .token_id = id, .use = true, .review = true,
                     .limits = {.sessions = 2, .connections = 3, .tokens_per_minute = 4, .sandbox_per_minute = std::chrono::seconds(5)}};
  return entry;
}

TEST(TokensTest, WhatIsWrittenIsReadAndHoldsNoSecret) {
  const std::string secret = new_secret();
  TokenSet tokens;
  ASSERT_TRUE(tokens.add(entry_of("a", secret)).has_value());
  EXPECT_FALSE(tokens.add(entry_of("a", new_secret())).has_value());
  const std::string text = tokens.to_json();
  EXPECT_EQ(text.find(secret), std::string::npos);
  EXPECT_EQ(text.find(secret.substr(4)), std::string::npos);
  const auto again = TokenSet::parse(text);
  ASSERT_TRUE(again.has_value()) << again.error();
  EXPECT_EQ(again->find(secret), entry_of("a", secret).principal);
  EXPECT_FALSE(again->find(secret + "0").has_value());
  EXPECT_FALSE(again->find("").has_value());
}

TEST(TokensTest, SecretsHaveTwoHundredFiftySixBitsAndDiffer) {
  const std::string a = new_secret(), b = new_secret();
  EXPECT_EQ(a.size(), 4U + 64U);
  EXPECT_NE(a, b);
  EXPECT_EQ(hash_secret("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2
}

TEST(TokensTest, FaultsNameTheEntryAndTheField) {
  const std::string good = R"("id":"a","sha256":")" + std::string(64, 'a') + R"(","tenant":"t","roles":["use"])";
  EXPECT_TRUE(TokenSet::parse(R"({"tokens":[{)" + good + "}]}").has_value());
  const std::vector<std::pair<std::string, std::string>> faults{
      {"{}", "tokens"}, {R"({"tokens":[7]})", "tokens[0]"}, {R"({"tokens":[{}]})", "id"},
      {R"({"tokens":[{"id":"a","sha256":"x","roles":[]}]})", "sha256"},
      {R"({"tokens":[{)" + good + R"(},{)" + good + "}]}", "tokens[1]"},
      {R"({"tokens":[{)" + good + R"(,"limits":{"sessions":-1}}]})", "sessions"},
      {R"({"tokens":[{"id":"a","sha256":")" + std::string(64, 'a') + R"(","tenant":"A","roles":["use"]}]})", "tenant"},
      {R"({"tokens":[{"id":"a","sha256":")" + std::string(64, 'a') + R"(","tenant":"t","roles":["root"]}]})", "roles"}};
  for (const auto& [text, word] : faults) {
    const auto parsed = TokenSet::parse(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_NE(parsed.error().find(word), std::string::npos) << parsed.error();
  }
}

TEST(TokensTest, TheFileIsReadableByItsOwnerAlone) {
  const auto file = std::filesystem::temp_directory_path() / ("fixpoint-tokens-" + std::to_string(::getpid()));
  TokenSet tokens;
  ASSERT_TRUE(tokens.add(entry_of("a", new_secret())).has_value());
  ASSERT_TRUE(write_tokens(file, tokens).has_value());
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(TokenSet::read(file)->size(), 1U);
  std::filesystem::remove(file);
  EXPECT_FALSE(TokenSet::read(file).has_value());
}

TEST(TokensTest, AFolderIsNoFileOfTokensAndAnEmptyFileNeither) {
  const auto folder = std::filesystem::temp_directory_path();
  const auto read = TokenSet::read(folder);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().find("irectory"), std::string::npos) << read.error();
  EXPECT_FALSE(TokenSet::read("/dev/null").has_value());
}

TEST(TokensTest, WhatCouldNotBeReadAgainIsNotWritten) {
  const auto file = std::filesystem::temp_directory_path() / ("fixpoint-tokens-" + std::to_string(::getpid()));
  TokenEntry entry = entry_of("a", new_secret());
  entry.principal.limits.sessions = -1;
  TokenSet tokens;
  ASSERT_TRUE(tokens.add(std::move(entry)).has_value());
  const auto written = write_tokens(file, tokens);
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().find("sessions"), std::string::npos) << written.error();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(TokensTest, BearersAreTakenOutOfTheHeader) {
  EXPECT_EQ(bearer("Bearer x"), "x");
  EXPECT_EQ(bearer("bEARER fxp_1"), "fxp_1");
  for (const std::string& header : {std::string(), std::string("Basic x"), std::string("Bearer "), "Bearer " + std::string(600, 'x')}) EXPECT_FALSE(bearer(header).has_value());
}

}  // namespace
}  // namespace fixpoint::server
