#include "agent/difference.h"

#include <gtest/gtest.h>

namespace fixpoint::agent {
namespace {

struct Case {
  std::string_view expected, got, words;
};

class DifferenceTest : public ::testing::TestWithParam<Case> {};

TEST_P(DifferenceTest, SaysWhatTheValuesDoNotSayThemselves) {
  EXPECT_EQ(difference_of_literals(GetParam().expected, GetParam().got), GetParam().words)
      << "expected " << GetParam().expected << ", got " << GetParam().got;
}

INSTANTIATE_TEST_SUITE_P(Numbers, DifferenceTest,
                         ::testing::Values(Case{"5", "5", ""}, Case{"8", "5", "got is 3 too small"},
                                           Case{"26", "65", "got is 39 too large; got to expected is 5 to 2"},
                                           Case{"-3", "3", "got has the wrong sign"}, Case{"1.5", "2", ""},
                                           Case{"99999999999999999999", "1", ""}, Case{"True", "False", ""},
                                           Case{"3", "None", "expected is a number, got is None"},
                                           Case{"1", "True", "expected is a number, got is a truth value"}, Case{"{1: 2}", "3", ""}));

INSTANTIATE_TEST_SUITE_P(
    Lists, DifferenceTest,
    ::testing::Values(
        Case{"[3, 1, 2]", "[2, 1, 3]", "got has the same elements in another order; got is reversed"},
        Case{"[4, 9, 1, 5]", "[5, 4, 9, 1]", "got has the same elements in another order; got must be rotated left by 1"},
        Case{"[1, 2, 3, 4]", "[2, 4, 1, 3]", "got has the same elements in another order; expected is in ascending order"},
        Case{"[1, -2, 3]", "[-2, 1, 3]", "got has the same elements in another order; expected is ordered by absolute value"},
        Case{"[1, 2]", "[1, 2, 3, 4]", "got has 2 elements too many at the end: [3, 4]"},
        Case{"[3, 1, 3]", "[1, 3]", "got lacks 1 element at the front: [3]; expected has repeats"},
        Case{"[4, 6, 5]", "[1, 3, 2]", "each element of got is 3 too small"},
        Case{"[2, 0, 4]", "[5, 0, 10]", "each element of got to that of expected is 5 to 2"},
        Case{"[2, 9, 4]", "[2, 8, 6]", "element 1 of got is 8, expected 9"},
        Case{"[9, 8, 7]", "[1, 2, 3, 4]", "got has 1 element more; element 0 of got is 1, expected 9; expected is in descending order"},
        Case{"['A', 'B']", "['a', 'b']", "only the case differs; expected is in upper case"},
        Case{"['b', 'ccc', 'aaaa']", "['aaaa', 'b', 'ccc']",
             "got has the same elements in another order; got must be rotated left by 1; expected is ordered by length"},
        Case{"[[1], [2]]", "[[1]]", "got has 1 element fewer"}, Case{"[]", "[]", ""}, Case{"(1, 2)", "[1, 2]", "expected is a tuple, got is a list"}));

INSTANTIATE_TEST_SUITE_P(
    Texts, DifferenceTest,
    ::testing::Values(Case{"'abc'", "'ABC'", "only the case differs; expected is in lower case"},
                      Case{"'Ab Cd'", "'ab cd'", "only the case differs; in expected each word begins with a capital letter"},
                      Case{"'aB c'", "'Ab C'", "only the case differs; each letter has the other case"},
                      Case{"'a_b_c'", "'a-b-c'", "got has '-' where expected has '_'"},
                      Case{"'(é)'", "'[é]'", "character 0 of got is '[', expected '('"},
                      Case{"'ab'", "'a b'", "got has 1 character too many: ' '"}, Case{"'a€b'", "'a'", "got lacks 2 characters at the end: '€b'"},
                      Case{"'€ba'", "'ab€'", "got has the same characters in another order; got is reversed"}));

TEST(DifferenceTest, OfOutputsTakesNumbersForNumbers) {
  EXPECT_EQ(difference_of_outputs("12\n", "7\n"), "got is 5 too small");
  EXPECT_EQ(difference_of_outputs("YES\n", "yes"), "only the case differs; expected is in upper case");
  EXPECT_EQ(difference_of_outputs("1 2\n", "1 2  \n"), "");
}

TEST(DifferenceTest, LongValuesAreNotListed) {
  const std::string words = difference(sandbox::Value::of(""), sandbox::Value::of(std::string(500, 'x')));
  EXPECT_EQ(words, "got has 500 characters too many at the end");
  EXPECT_EQ(difference(sandbox::Value::of(""), sandbox::Value::of(std::string(5000, 'x'))), "");
}

}  // namespace
}  // namespace fixpoint::agent
