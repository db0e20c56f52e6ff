#include "server/http.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "server/api.h"
#include "server/json_depth.h"
#include "server/recent_trips.h"
#include "server/tenancy.h"

namespace fixpoint::server {
namespace {

TEST(HttpTest, TargetsAreTakenApart) {
  const auto target = parse_target("/a%20b/c?x=1&y=a+b%26&z&=q#f");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/a b/c");
  EXPECT_EQ(target->query, (Headers{{"x", "1"}, {"y", "a b&"}, {"z", ""}}));
  for (const char* text : {"", "a", "*", "http://x/", "/%", "/%2", "/%zz", "/%00", "/?a=%0"}) EXPECT_FALSE(parse_target(text).has_value()) << text;
}

TEST(HttpTest, DepthIsCountedOutsideOfStringsOnly) {
  EXPECT_EQ(json_depth("7"), 0);
  EXPECT_EQ(json_depth(R"({"a":[{}]})"), 3);
  EXPECT_EQ(json_depth(R"(["[[[", "\"[["])"), 1);
}

TEST(HttpTest, ErrorsAreAsOpenAisClientsExpect) {
  const ApiError error{.status = 429, .message = "slow \"down\"", .param = "n", .retry_after = std::chrono::seconds(3)};
  const auto body = nlohmann::json::parse(error.body());
  EXPECT_EQ(body, (nlohmann::json{{"error", {{"message", "slow \"down\""}, {"type", "rate_limit_error"}, {"param", "n"}, {"code", nullptr}}}}));
  EXPECT_EQ(error.response().headers, (Headers{{"Retry-After", "3"}}));
}

TEST(HttpTest, RoutesAreFoundByMethodAndParts) {
  EXPECT_EQ(find_route("GET", "/health").route->pattern, "/health");
  EXPECT_EQ(find_route("HEAD", "/health").route->pattern, "/health");
  const RouteMatch match = find_route("POST", "/v1/escalations/e-1/hint");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.parameters, std::vector<std::string>{"e-1"});
  EXPECT_EQ(find_route("DELETE", "/v1/sessions").allowed, "GET");
  for (const char* path : {"/", "/healthz", "/health/", "/v1", "/v1/sessions//events", "/v1/escalations/", "//health"}) {
    EXPECT_EQ(find_route("GET", path).route, nullptr) << path;
  }
}

TEST(HttpTest, ReadinessFollowsTheWatchdogAndTheDrain) {
  EXPECT_FALSE(why_not_ready(false, false).has_value());
  EXPECT_EQ(why_not_ready(false, true)->code, "draining");
  EXPECT_EQ(why_not_ready(true, false)->code, "watchdog");
  EXPECT_EQ(why_not_ready(true, false)->status, 503);
}

TEST(RecentTripsTest, ATripIsShownForAWhileAndNotForEver) {
  RecentTrips trips;
  const auto start = RecentTrips::Clock::now();
  EXPECT_FALSE(trips.seen(0, start));
  EXPECT_TRUE(trips.seen(1, start));
  EXPECT_TRUE(trips.seen(1, start + RecentTrips::kShown / 2));
  EXPECT_FALSE(trips.seen(1, start + RecentTrips::kShown));
  EXPECT_TRUE(trips.seen(2, start + 2 * RecentTrips::kShown));
}

TEST(TenancyTest, ASessionsIdSaysWhoseItIs) {
  const std::string mine = new_session_id("acme"), local = new_session_id("local");
  EXPECT_EQ(tenant_of_session(mine), "acme");
  EXPECT_EQ(tenant_of_session(local), "local");
  const Principal acme{.tenant = "acme", .use = true}, other{.tenant = "acm", .use = true}, chief{.tenant = "x", .operate = true};
  EXPECT_TRUE(may_see(acme, mine));
  EXPECT_FALSE(may_see(acme, local));
  EXPECT_FALSE(may_see(other, mine));
  EXPECT_TRUE(may_see(chief, mine));
  for (const char* name : {"", "A", "a-b", "a b", "0123456789012345678901234567890123"}) EXPECT_FALSE(is_tenant_name(name)) << name;
}

}  // namespace
}  // namespace fixpoint::server
