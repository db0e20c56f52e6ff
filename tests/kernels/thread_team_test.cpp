#include "kernels/cpu/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

using cpu::ThreadTeam;

TEST(ThreadTeamTest, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 7}) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.size(), threads);
    for (const std::int64_t tasks : {0, 1, 2, 3, 100, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      team.run(tasks, [&](std::int64_t task, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        runs[static_cast<std::size_t>(task)].fetch_add(1);
      });
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadTeamTest, ABackendSharesItsThreads) {
  const auto backend = make_cpu_backend({.num_threads = 3});
  EXPECT_EQ(backend->num_threads(), 3);
  std::vector<std::atomic<int>> runs(100);
  backend->share(100, [&](std::int64_t task, int thread) {
    EXPECT_LT(thread, 3);
    runs[static_cast<std::size_t>(task)].fetch_add(1);
  });
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count.load(), 1);
}

TEST(ThreadTeamTest, WhatTasksWriteIsVisibleAfterwards) {
  ThreadTeam team(4);
  std::vector<std::int64_t> squares(64);
  std::int64_t total = 0;
  for (std::int64_t job = 0; job < 2000; ++job) {
    team.run(64, [&](std::int64_t task, int) { squares[static_cast<std::size_t>(task)] = task * job; });
    total += std::accumulate(squares.begin(), squares.end(), std::int64_t{0});
  }
  EXPECT_EQ(total, 2016LL * (1999LL * 2000LL / 2));
}

TEST(ThreadTeamTest, WakesSleepersForALaterJob) {
  ThreadTeam team(3);
  std::atomic<int> done = 0;
  for (int job = 0; job < 20; ++job) {
    // A task that only another thread can release: the team must have woken it.
    std::atomic<int> arrived = 0;
    team.run(2, [&](std::int64_t, int) {
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();
      done.fetch_add(1);
    });
  }
  EXPECT_EQ(done.load(), 40);
}

TEST(ThreadTeamTest, ManyTeamsLiveSideBySide) {
  std::vector<std::jthread> users;
  std::atomic<std::int64_t> total = 0;
  for (int u = 0; u < 3; ++u) {
    users.emplace_back([&] {
      ThreadTeam team(2);
      for (int job = 0; job < 200; ++job) team.run(5, [&](std::int64_t task, int) { total.fetch_add(task); });
    });
  }
  users.clear();
  EXPECT_EQ(total.load(), 3 * 200 * 10);
}

TEST(ThreadTeamTest, ABackendsThreadsAgreeWithOne) {
  Random random(31);
  HostMatrix w(DType::q4_0, 300, 256, random);
  const Tensor part = w.tensor();
  Floats x = random.normal(40 * 256);
  std::vector<Floats> outs;
  for (const int threads : {1, 4}) {
    const auto backend = make_cpu_backend({threads, CpuIsa::best});
    const auto weight = backend->load_weight({&part, 1});
    outs.push_back(poison(40 * 300));
    backend->matmul(matrix(x, 40, 256), *weight, nullptr, matrix(outs.back(), 40, 300));
  }
  EXPECT_TRUE(same_bits(outs[0].data(), outs[1].data(), 40 * 300));
}

}  // namespace
}  // namespace fixpoint::kernels
