#include "server/config.h"

#include <gtest/gtest.h>

namespace fixpoint::server {
namespace {

TEST(ConfigTest, KeysAreFlagsAndListsGiveSeveralValues) {
  const auto entries = parse_config(R"({"listen": ["a:1", "unix:/x"], "tls_cert": "c", "max-sessions": 4, "own_tests": true, "head_timeout": 0.5})");
  ASSERT_TRUE(entries.has_value()) << entries.error();
  const std::vector<ConfigEntry> expected{{"--head-timeout", {"0.5"}}, {"--listen", {"a:1", "unix:/x"}}, {"--max-sessions", {"4"}}, {"--own-tests", {"true"}}, {"--tls-cert", {"c"}}};
  EXPECT_EQ(*entries, expected);
}

TEST(ConfigTest, WhatIsNoConfigurationIsRefusedByName) {
  for (const char* text : {"", "[]", "{", R"({"a": {}})", R"({"a": null})", R"({"a": [[1]]})", R"({"": 1})", R"({"-a": 1})", R"({"A B": 1})", R"({"a-b": 1, "a_b": 2})"}) {
    EXPECT_FALSE(parse_config(text).has_value()) << text;
  }
  EXPECT_NE(parse_config(R"({"listen": {}})").error().find("listen"), std::string::npos);
  EXPECT_NE(parse_config(R"({"rounds": 1e999})").error().find("out of range"), std::string::npos);
}

}  // namespace
}  // namespace fixpoint::server
