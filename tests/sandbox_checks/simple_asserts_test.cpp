#include "sandbox/check.h"

#include <gtest/gtest.h>

namespace fixpoint::sandbox {
namespace {

TEST(SimpleAssertsTest, ListsOfLiteralComparisonsBecomeCalls) {
  const auto tests = parse_simple_asserts("assert f(1, [2, 'x']) == (3,)\r\nassert f(a=1,) == None # why\n\n  assert f() == {1: 2};\n");
  ASSERT_TRUE(tests);
  ASSERT_EQ(tests->size(), 3u);
  EXPECT_EQ((*tests)[0].entry_point, "f");
  EXPECT_EQ(to_text((*tests)[0].arguments[1]), "[2, 'x']");
  EXPECT_EQ(to_text(std::get<Value>((*tests)[0].expected)), "(3,)");
  EXPECT_EQ((*tests)[1].named[0].first, "a");
}

TEST(SimpleAssertsTest, AnythingElseIsLeftToPython) {
  for (const char* text : {"", "assert f(1)", "assert not f(1) == 2", "assert f(1) == 2, 'why'", "assert f(g(1)) == 2", "assert f(1) == x", "assert f(1) == 2 or True",
                           "assert f(1) == 2 == 2", "x = 1\nassert f(x) == 2", "assert f(1) is None", "assert m.f(1) == 2", "assert f(1)[0] == 2", "assert f(1) == 2 if x else 3",
                           "assert f(*[1]) == 1", "assert f(a=1, 2) == 1", "assert f(1) == -x"}) {
    EXPECT_FALSE(parse_simple_asserts(text)) << text;
  }
  EXPECT_FALSE(parse_simple_asserts("assert g(1) == 2", "f"));
}

}  // namespace
}  // namespace fixpoint::sandbox
