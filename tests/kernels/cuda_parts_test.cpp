#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/handles.h"
#include "kernels/cuda/index_upload.h"
#include "kernels/cuda_backend.h"
#include "tests/cuda_emulation/emulated_stream.h"

namespace fixpoint::kernels::cuda {
namespace {

/// Sequences of (context, tokens in the step) with blocks of 16.
struct Sequences {
  std::vector<std::int32_t> q_indptr{0}, block_indptr{0}, block_ids, last_block_len, positions;

  void add(std::int32_t context, std::int32_t tokens) {
    block_ids.resize(block_ids.size() + static_cast<std::size_t>((context + 15) / 16));
    block_indptr.push_back(static_cast<std::int32_t>(block_ids.size()));
    last_block_len.push_back((context - 1) % 16 + 1);
    for (std::int32_t p = context - tokens; p < context; ++p) positions.push_back(p);
    q_indptr.push_back(static_cast<std::int32_t>(positions.size()));
  }
  [[nodiscard]] PagedBatch batch() const { return {16, q_indptr, block_indptr, block_ids, last_block_len, positions}; }
};

TEST(AttentionPlanTest, FewTokensAreSplitOverTheContextAndManyAreNot) {
  Sequences s;
  s.add(1000, 1);   // 4 parts
  s.add(200, 1);    // 1 part
  s.add(2000, 40);  // a prompt: whole
  AttentionPlan plan;
  plan.build(s.batch(), 8);
  ASSERT_EQ(plan.tiles.size(), 4U + 1 + 5);
  EXPECT_EQ(plan.slots, 4);
  ASSERT_EQ(plan.combine.size(), 1U);
  EXPECT_EQ(plan.combine[0].num_splits, 4);
  for (std::int32_t i = 0; i < 4; ++i) EXPECT_EQ(plan.tiles[static_cast<std::size_t>(i)].split, i);
  EXPECT_EQ(plan.tiles[4].split, -1);
  EXPECT_EQ(plan.tiles[9].first_token, 34);
  EXPECT_EQ(plan.tiles[9].num_tokens, 8);
}

TEST(AttentionPlanTest, EveryTokenIsInOneTilePerPart) {
  Sequences s;
  for (int i = 0; i < 30; ++i) s.add(10 + 97 * i, 1 + i % 9);
  for (const std::int32_t tokens : {1, 2, 8}) {
    AttentionPlan plan;
    plan.build(s.batch(), tokens);
    std::vector<std::int32_t> parts(s.positions.size());
    for (const AttentionTile& tile : plan.tiles) {
      for (std::int32_t t = 0; t < tile.num_tokens; ++t) parts[static_cast<std::size_t>(tile.first_token + t)] += tile.split < 0 ? tile.num_splits : 1;
    }
    for (std::size_t t = 0; t < parts.size(); ++t) EXPECT_GE(parts[t], s.positions[t] / kSplitPositions + 1);
  }
}

TEST(AttentionPlanTest, PromptsGoIntoPrefillTilesTheLongestContextsFirst) {
  Sequences s;
  s.add(1000, 1);
  s.add(100, 40);
  AttentionPlan plan;
  plan.build(s.batch(), 8, 16);
  EXPECT_EQ(plan.tiles.size(), 4U) << "the single token's";
  ASSERT_EQ(plan.prefill.size(), 3U);
  EXPECT_EQ(plan.prefill[0].first_token, 25);
  EXPECT_EQ(plan.prefill[1].first_token, 9);
  EXPECT_EQ(plan.prefill[2].first_token, 1);
  EXPECT_EQ(plan.prefill[2].num_tokens, 8);
  EXPECT_EQ(plan.prefill[2].sequence, 1);
}

TEST(AttentionPlanTest, PartialResultsAreBounded) {
  Sequences s;
  for (int i = 0; i < 100; ++i) s.add(20000, 1);
  AttentionPlan plan;
  plan.build(s.batch(), 1);
  EXPECT_LE(plan.slots, kMaxSlots);
  EXPECT_LT(plan.combine.size(), 100U);
}

TEST(CudaErrorTest, NamesTheCallThePlaceAndTheReason) {
  try {
    const DeviceMemory memory(std::size_t{1} << 40U);
    FAIL() << "the device has not so much";
  } catch (const CudaError& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("cudaMalloc (handles.cpp:")) << e.what();
    EXPECT_NE(std::string(e.what()).find("cudaErrorMemoryAllocation"), std::string::npos);
  }
}

TEST(CudaStatusTest, WithoutADeviceTheBackendSaysWhy) {
  cuda_emulation::set_device_count(0);
  EXPECT_TRUE(cuda_status().devices.empty());
  EXPECT_THROW(static_cast<void>(make_cuda_backend()), std::runtime_error);
  cuda_emulation::set_device_count(1);
  EXPECT_EQ(cuda_status().devices.size(), 1U);
  EXPECT_THROW(static_cast<void>(make_cuda_backend({.device = 1})), std::runtime_error);
}

TEST(DeviceMemoryTest, AllIsGivenBack) {
  const std::size_t before = cuda_emulation::allocated_bytes();
  {
    const auto backend = make_cuda_backend();
    const Buffer buffer = backend->allocate(1000);
    const KvLayer kv = backend->allocate_kv({4, 16, 2, 64, KvType::f16});
    EXPECT_GE(cuda_emulation::allocated_bytes(), before + 1000 + 4 * 2 * 16 * 2 * 64 * 2);
  }
  EXPECT_EQ(cuda_emulation::allocated_bytes(), before);
}

TEST(HostMemoryTest, IsPageLockedAndGivenBack) {
  const auto backend = make_cuda_backend();
  const std::size_t before = cuda_emulation::pinned_bytes();
  {
    const Buffer buffer = backend->allocate_host(1000);
    EXPECT_EQ(cuda_emulation::pinned_bytes(), before + 1000);
  }
  EXPECT_EQ(cuda_emulation::pinned_bytes(), before);
}

TEST(IndexUploadTest, WhatWasPutStaysUntilItIsUsed) {
  const Stream stream;
  IndexUpload upload(stream);
  std::vector<std::int32_t> values(300000);
  std::vector<std::int32_t> back(values.size());
  for (std::int32_t round = 0; round < 10; ++round) {  // several times round the ring
    values.assign(values.size(), round);
    const std::int32_t* device = upload.put<std::int32_t>(values);
    values.assign(values.size(), -1);
    check(cudaMemcpyAsync(back.data(), device, back.size() * 4, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
    stream.synchronize();
    EXPECT_EQ(back, std::vector<std::int32_t>(values.size(), round));
  }
}

TEST(IndexUploadTest, WhatRoomWasMadeForStaysTogether) {
  constexpr std::int32_t kArrays = 3;
  const Stream stream;
  IndexUpload upload(stream);
  for (const std::size_t count : {300001U, 250000U, 700001U, 3U, 700001U}) {  // the third is more than the ring holds
    upload.reserve(kArrays * count * sizeof(std::int32_t), kArrays);
    std::vector<const std::int32_t*> device;
    for (std::int32_t i = 0; i < kArrays; ++i) device.push_back(upload.put<std::int32_t>(std::vector<std::int32_t>(count, i)));
    for (std::int32_t i = 0; i < kArrays; ++i) {
      std::vector<std::int32_t> back(count, -1);
      check(cudaMemcpyAsync(back.data(), device[static_cast<std::size_t>(i)], count * 4, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
      stream.synchronize();
      EXPECT_EQ(back, std::vector<std::int32_t>(count, i)) << count;
    }
  }
}

}  // namespace
}  // namespace fixpoint::kernels::cuda
