#include "agent/budget.h"

#include <gtest/gtest.h>

namespace fixpoint::agent {
namespace {

using std::chrono::milliseconds;

constexpr Amounts kTen{.rounds = 10, .tokens = 10, .wall = milliseconds(10), .sandbox = milliseconds(10)};

TEST(BudgetTest, ReservesNoMoreThanIsLeft) {
  Budget budget(kTen);
  const auto first = budget.reserve({.tokens = 7});
  EXPECT_EQ(first.granted().tokens, 7);
  const auto second = budget.reserve({.tokens = 7});
  EXPECT_EQ(second.granted().tokens, 3);
  EXPECT_EQ(budget.left().tokens, 0);
}

TEST(BudgetTest, WhatWasNotSpentComesBack) {
  Budget budget(kTen);
  {
    auto reservation = budget.reserve({.tokens = 8});
    reservation.spend({.tokens = 2});
    reservation.spend({.tokens = 1});
    EXPECT_EQ(reservation.granted().tokens, 5);
  }
  EXPECT_EQ(budget.spent().tokens, 3);
  EXPECT_EQ(budget.left().tokens, 7);
}

TEST(BudgetTest, AnOverstepIsBookedInFull) {
  Budget budget(kTen);
  budget.reserve({.sandbox = milliseconds(4)}).spend({.sandbox = milliseconds(15)});
  EXPECT_EQ(budget.spent().sandbox, milliseconds(15));
  EXPECT_EQ(budget.left().sandbox, milliseconds(0));
}

TEST(BudgetTest, ParentsAreSpentToo) {
  Budget batch({.rounds = 2, .tokens = 5, .wall = milliseconds(9), .sandbox = milliseconds(9)});
  Budget task(kTen, &batch);
  Budget round(kTen, &task);
  auto reservation = round.reserve({.tokens = 9});
  EXPECT_EQ(reservation.granted().tokens, 5);
  EXPECT_EQ(task.left().tokens, 0);
  reservation.spend({.tokens = 2});
  EXPECT_EQ(batch.spent().tokens, 2);
  EXPECT_EQ(task.spent().tokens, 2);
  EXPECT_EQ(round.left().rounds, 2);
}

TEST(BudgetTest, AGrantRaisesOneBudgetAlone) {
  Budget batch({.tokens = 10});
  Budget task({.tokens = 4}, &batch);
  task.spend({.tokens = 4});
  task.extend({.tokens = 100});
  EXPECT_EQ(task.left().tokens, 6);
  task.extend({.tokens = -50});
  EXPECT_EQ(task.limits().tokens, 104);
}

}  // namespace
}  // namespace fixpoint::agent
