#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>

#include "sandbox/detail/namespaces.h"

namespace fixpoint::sandbox::detail {
namespace {

/// In a child, which may go into other namespaces; false also where it did not end by itself.
bool holds_in_child(const std::function<bool()>& what) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(what() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

constexpr int kBoth = CLONE_NEWNET | CLONE_NEWIPC;

TEST(NamespacePoolTest, WhatIsNotWholeIsNotHandedOut) {
  EXPECT_TRUE(holds_in_child([] {
    NamespacePool pool(kBoth);
    pool.give_back({});
    const auto taken = pool.take();  // none where this process may not make any
    return !taken || (taken->network.valid() && taken->ipc.valid());
  }));
}

TEST(NamespacePoolTest, WithoutKindsThereIsNothingToJoin) {
  NamespacePool pool(0);
  const auto taken = pool.take();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->network.valid());
  EXPECT_FALSE(taken->ipc.valid());
  EXPECT_FALSE(pool.refill(4));
  EXPECT_TRUE(join(taken->network.get(), taken->ipc.get()));
}

TEST(NamespacePoolTest, EachThatIsOutIsAnotherAndTheLongestIdleComesFirst) {
  // An ordinary user makes them in a user namespace, as the broker does.
  const auto may = [] { return ::geteuid() == 0 || ::unshare(CLONE_NEWUSER) == 0; };
  if (!holds_in_child(may)) GTEST_SKIP() << "this host gives an ordinary user no namespaces";
  EXPECT_TRUE(holds_in_child([may] {
    if (!may()) return false;
    NamespacePool pool(kBoth);
    auto first = pool.take(), second = pool.take();
    if (!first || !second) return false;
    const auto ids_of = [](const JoinedNamespaces& namespaces) {
      NamespaceIds ids = namespaces_of_child({0, -1}, namespaces, false);
      return ids.net + ids.ipc;
    };
    const std::string one = ids_of(*first), other = ids_of(*second);
    pool.give_back(std::move(*second));
    pool.give_back(std::move(*first));
    const auto next = pool.take(), last = pool.take();
    return !one.empty() && one != other && next && last && ids_of(*next) == other && ids_of(*last) == one;
  }));
}

}  // namespace
}  // namespace fixpoint::sandbox::detail
