#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/terminal.h"
#include "server/tenancy.h"
#include "server/tokens.h"

namespace fixpoint::cli {
namespace {

struct TokenOptions {
  std::string file;
  std::string id;
  std::string tenant = "local";
  std::vector<std::string> roles{"use"};
  std::optional<int> sessions, connections;
  std::optional<std::int64_t> tokens_per_minute, sandbox_seconds;
};

int make_token(const TokenOptions& options) {
  if (!server::is_tenant_name(options.tenant)) return wrong_usage("--tenant: must be 1 to 32 of a-z, 0-9 and _");
  server::TokenSet tokens;
  if (std::filesystem::exists(options.file)) {
    auto read = server::TokenSet::read(options.file);
    if (!read) return fail(read.error());
    tokens = *std::move(read);
  }
  const std::string secret = server::new_secret();
  server::TokenEntry entry{.sha256 = server::hash_secret(secret)};
  entry.principal = {.tenant = options.tenant, .token_id = options.id};
  for (const std::string& role : options.roles) {
    entry.principal.use = entry.principal.use || role == "use";
    entry.principal.review = entry.principal.review || role == "review";
    entry.principal.operate = entry.principal.operate || role == "operate";
  }
  entry.principal.limits = {.sessions = options.sessions, .connections = options.connections, .tokens_per_minute = options.tokens_per_minute};
  if (options.sandbox_seconds) entry.principal.limits.sandbox_per_minute = std::chrono::seconds(*options.sandbox_seconds);
  if (const auto added = tokens.add(std::move(entry)); !added) return fail("--id: " + added.error());
  if (const auto written = server::write_tokens(options.file, tokens); !written) return fail(written.error());
  std::fprintf(stderr, "fixpoint: this is shown once; the file keeps only its hash\n");
  std::printf("%s\n", secret.c_str());
  return kSuccess;
}

}  // namespace

void add_token_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("token", "Tokens for fixpoint serve.");
  command->require_subcommand(1);
  auto options = std::make_shared<TokenOptions>();
  constexpr int kMost = server::kMostOfALimit;
  auto* make = command->add_subcommand("new", "Make a token, print it, and add its hash to a file.");
  make->add_option("--file", options->file, "the file that fixpoint serve --tokens reads; made where it is missing")->required();
  make->add_option("--id", options->id, "the token's public name, for logs and limits")->required()->check(CLI::Validator([](std::string& text) {
    if (text.empty() || text.size() > 64) return std::string("must have 1 to 64 bytes");
    const bool control = std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    return control || first_byte_of_no_text(text) ? std::string("must be text without control characters") : std::string();
  }, "NAME"));
  make->add_option("--tenant", options->tenant, "whose sessions and cached prefixes it sees")->capture_default_str();
  make->add_option("--role", options->roles, "use, review or operate; may be given several times")->check(CLI::IsMember({"use", "review", "operate"}))->capture_default_str();
  make->add_option("--sessions", options->sessions, "sessions and completions at work at once")->check(CLI::Range(0, kMost));
  make->add_option("--connections", options->connections, "open sockets")->check(CLI::Range(0, kMost));
  make->add_option("--tokens-per-minute", options->tokens_per_minute, "tokens that models may write")->transform(positive_count());
  make->add_option("--sandbox-seconds-per-minute", options->sandbox_seconds, "time in the sandbox")->transform(positive_count());
  make->callback([options, &run] { run = [options] { return make_token(*options); }; });
}

}  // namespace fixpoint::cli
