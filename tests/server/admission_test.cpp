#include "server/admission.h"

#include <gtest/gtest.h>

namespace fixpoint::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = Admission::Clock;

TEST(AdmissionTest, PlacesAreGivenBackWhenTheyDie) {
  Admission admission;
  const Principal who{.token_id = "a", .limits = {.sessions = 2}};
  auto first = admission.begin(who);
  auto second = admission.begin(who);
  ASSERT_TRUE(first && second);
  const auto third = admission.begin(who);
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().limit, "sessions");
  EXPECT_TRUE(admission.begin({.token_id = "b"}).has_value());
  *first = Admission::Place();
  EXPECT_EQ(admission.sessions(), 1);
  EXPECT_TRUE(admission.begin(who).has_value());
}

TEST(AdmissionTest, AMinutesTokensMayBeSpentAtOnceAndTimePaysForMore) {
  Admission admission;
  const Principal who{.token_id = "a", .limits = {.tokens_per_minute = 60}};
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(admission.begin(who, start).has_value());
  admission.spend(who, 59, milliseconds(0), start);
  EXPECT_TRUE(admission.begin(who, start).has_value());
  admission.spend(who, 31, milliseconds(0), start);
  const auto busy = admission.begin(who, start);
  ASSERT_FALSE(busy.has_value());
  EXPECT_EQ(busy.error().limit, "tokens_per_minute");
  EXPECT_EQ(busy.error().retry_after, seconds(31));
  EXPECT_FALSE(admission.begin(who, start + seconds(30)).has_value());
  EXPECT_TRUE(admission.begin(who, start + seconds(31)).has_value());
}

TEST(AdmissionTest, RestDoesNotPileUp) {
  Admission admission;
  const Principal who{.token_id = "a", .limits = {.sandbox_per_minute = seconds(1)}};
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(admission.begin(who, start).has_value());
  const Clock::time_point later = start + seconds(3600);
  EXPECT_TRUE(admission.begin(who, later).has_value());
  admission.spend(who, 0, seconds(2), later);
  EXPECT_EQ(admission.begin(who, later).error().limit, "sandbox_per_minute");
  EXPECT_TRUE(admission.begin(who, later + seconds(61)).has_value());
}

TEST(AdmissionTest, ConnectionsAreCountedByAddressAndByToken) {
  Admission admission({.max_connections = 3, .max_connections_per_address = 2});
  auto a = admission.connect_address("1.1.1.1");
  auto b = admission.connect_address("1.1.1.1");
  EXPECT_FALSE(admission.connect_address("1.1.1.1").has_value());
  auto c = admission.connect_address("2.2.2.2");
  EXPECT_FALSE(admission.connect_address("3.3.3.3").has_value());
  *a = Admission::Place();
  EXPECT_TRUE(admission.connect_address("1.1.1.1").has_value());
  auto token = admission.connect_token({.token_id = "t", .limits = {.connections = 1}});
  EXPECT_TRUE(token.has_value());
  EXPECT_FALSE(admission.connect_token({.token_id = "t", .limits = {.connections = 1}}).has_value());
}

TEST(AdmissionTest, APlaceMayOutliveTheAdmission) {
  Admission::Place place;
  {
    Admission admission;
    place = *admission.begin({.token_id = "a"});
  }
  place = Admission::Place();
}

}  // namespace
}  // namespace fixpoint::server
