#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/device_weight.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/handles.h"
#include "kernels/cuda/index_upload.h"
#include "kernels/cuda/row_kernels.h"
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
  s.add(2000, 70);  // a prompt: whole
  AttentionPlan plan;
  plan.build(s.batch(), 8);
  ASSERT_EQ(plan.tiles.size(), 4U + 1 + 9);
  EXPECT_EQ(plan.slots, 4);
  ASSERT_EQ(plan.combine.size(), 1U);
  EXPECT_EQ(plan.combine[0].num_splits, 4);
  for (std::int32_t i = 0; i < 4; ++i) EXPECT_EQ(plan.tiles[static_cast<std::size_t>(i)].split, i);
  EXPECT_EQ(plan.tiles[4].split, -1);
  EXPECT_EQ(plan.tiles[9].first_token, 34);
  EXPECT_EQ(plan.tiles[9].num_tokens, 8);
}

TEST(AttentionPlanTest, AFewTokensAfterALongPrefixAreSplitAndNoPrefillTile) {
  Sequences s;
  s.add(2000, 40);
  AttentionPlan plan;
  plan.build(s.batch(), 8, 16);
  EXPECT_TRUE(plan.prefill.empty());
  EXPECT_EQ(plan.tiles.size(), 5U * 8) << "tiles of 8 tokens, parts of 256 positions";
  EXPECT_EQ(plan.combine.size(), 5U);
}

/// What a plan does with each token: the parts that are computed (-1: all in one), and how many are combined.
struct Planned {
  std::vector<std::vector<std::int32_t>> parts, combined;
  std::vector<std::int32_t> slots;

  Planned(const AttentionPlan& plan, std::size_t num_tokens) : parts(num_tokens), combined(num_tokens) {
    for (const AttentionTile& tile : plan.tiles) {
      add(tile, tile.split, parts);
      if (tile.split >= 0) slots.push_back(tile.slot + tile.split);
    }
    for (const AttentionTile& tile : plan.prefill) add(tile, -1, parts);
    for (const AttentionTile& tile : plan.combine) add(tile, tile.num_splits, combined);
    std::ranges::sort(slots);
  }
  static void add(const AttentionTile& tile, std::int32_t value, std::vector<std::vector<std::int32_t>>& to) {
    for (std::int32_t t = tile.first_token; t < tile.first_token + tile.num_tokens; ++t) to[static_cast<std::size_t>(t)].push_back(value);
  }
};

std::vector<std::int32_t> count_up(std::int32_t n) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(AttentionPlanTest, EveryPartOfATokensContextIsComputedOnce) {
  Sequences s;
  for (int i = 0; i < 30; ++i) s.add(10 + 97 * i, 1 + i % 9);
  s.add(3000, 40);
  s.add(3000, 100);
  for (const std::int32_t tokens : {1, 2, 8}) {
    for (const std::int32_t prefill : {0, 16}) {
      AttentionPlan plan;
      plan.build(s.batch(), tokens, prefill);
      EXPECT_EQ(plan.prefill.empty(), prefill == 0);
      const Planned planned(plan, s.positions.size());
      EXPECT_EQ(planned.slots, count_up(plan.slots)) << "each place is written once";
      for (std::size_t t = 0; t < s.positions.size(); ++t) {
        if (planned.combined[t].empty()) {
          EXPECT_EQ(planned.parts[t], std::vector<std::int32_t>{-1}) << "token " << t;
          continue;
        }
        ASSERT_EQ(planned.combined[t].size(), 1U) << "token " << t;
        EXPECT_EQ(planned.parts[t], count_up(planned.combined[t][0])) << "token " << t;
        EXPECT_GT(planned.combined[t][0], s.positions[t] / kSplitPositions) << "token " << t;
      }
    }
  }
}

TEST(AttentionPlanTest, PromptsGoIntoPrefillTilesTheLongestContextsFirst) {
  Sequences s;
  s.add(1000, 1);
  s.add(100, 70);
  AttentionPlan plan;
  plan.build(s.batch(), 8, 16);
  EXPECT_EQ(plan.tiles.size(), 4U) << "the single token's";
  ASSERT_EQ(plan.prefill.size(), 5U);
  EXPECT_EQ(plan.prefill[0].first_token, 55);
  EXPECT_EQ(plan.prefill[1].first_token, 39);
  EXPECT_EQ(plan.prefill[4].first_token, 1);
  EXPECT_EQ(plan.prefill[4].num_tokens, 6);
  EXPECT_EQ(plan.prefill[4].sequence, 1);
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

// Weights that go through both buffers of 16 MiB several times, and one of which a row is more than a buffer.
TEST(StagedUploadTest, WeightsLargerThanItsBuffersArriveWhole) {
  const Stream stream;
  StagedUpload upload(stream);
  constexpr std::int64_t kLongRow = (std::int64_t{17} << 20U) / 4;
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>(13000, 1024), {3, kLongRow}, {9000, 1024}}) {
    std::vector<std::uint32_t> values(static_cast<std::size_t>(rows * cols));
    std::iota(values.begin(), values.end(), 0U);
    const std::int64_t first_rows = rows / 3;
    const Tensor parts[] = {Tensor::of(values.data(), DType::f32, {first_rows, cols}),
                            Tensor::of(values.data() + first_rows * cols, DType::f32, {rows - first_rows, cols})};
    const DeviceWeight weight(parts, upload);
    stream.synchronize();
    ASSERT_EQ(weight.parts().size(), 2U);
    EXPECT_EQ(weight.parts()[1].first_row, first_rows);
    for (std::size_t i = 0; i < 2; ++i) {
      const MatrixView& view = weight.parts()[i].view;
      ASSERT_EQ(view.pitch, 4 * cols) << "rows of whole units follow one another as in the file";
      EXPECT_EQ(std::memcmp(view.data, parts[i].data, static_cast<std::size_t>(parts[i].bytes())), 0)
          << rows << " rows, part " << i;
    }
  }
}

// Steps are padded with tokens whose slot is -1.
TEST(RotateAndStoreKernelTest, ATokenWithoutASlotStaysAsItIsAndIsStoredNowhere) {
  constexpr std::int32_t kTokens = 3, kQueries = 3, kDim = 24, kWidth = (kQueries + 2) * kDim, kBlocks = 2, kBlock = 4;
  constexpr std::int32_t kSlot = 1 * kBlock + 2;
  const std::vector<std::int32_t> positions{3, 6, 0}, slots{-1, kSlot, -1};
  const std::vector<float> inv_freq{1.0F, 0.5F, 0.25F, 0.125F};
  const std::vector<float> weight(kDim, 1.5F);
  for (const KvType type : kKvTypes) {
    const KvShape shape{kBlocks, kBlock, 1, kDim, type};
    const DeviceMemory storage(KvGeometry(shape, nullptr).bytes());
    const KvGeometry kv(shape, storage.data());
    std::fill_n(storage.data(), storage.bytes(), std::byte{0x11});
    std::vector<float> x(kTokens * kWidth);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i);
    const std::vector<float> before = x;
    const auto heads = [&](std::int32_t first, std::int32_t count) {
      return Rows{x.data() + first * kDim, kWidth, kTokens, count * kDim};
    };

    const Stream stream;
    queue_rotate_and_store(heads(0, kQueries), heads(kQueries, 1), heads(kQueries + 1, 1),
                           {weight.data(), weight.data(), 1e-6F}, {inv_freq.data(), 4, 1.0F, false}, positions.data(),
                           slots.data(), kv, stream.get());
    stream.synchronize();
    for (std::int32_t i = 0; i < kTokens * kWidth; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool changes = i / kWidth == 1 && i % kWidth < (kQueries + 1) * kDim;
      EXPECT_EQ(x[at] != before[at], changes) << to_string(type) << " float " << i;
    }
    // Rows [block][key, value][slot] of one head: the token's two are written, no other is.
    const auto untouched = [](const std::byte* row, std::int32_t bytes) {
      return std::all_of(row, row + bytes, [](std::byte b) { return b == std::byte{0x11}; });
    };
    const auto* scales = reinterpret_cast<const std::byte*>(kv.scales);
    for (std::int32_t row = 0; row < kBlocks * 2 * kBlock; ++row) {
      const bool written = row == (1 * 2 + 0) * kBlock + 2 || row == (1 * 2 + 1) * kBlock + 2;
      EXPECT_EQ(untouched(kv.data + row * kv.row_bytes, kv.row_bytes), !written) << to_string(type) << " row " << row;
      const bool scales_written = written && kv.row_scales > 0;
      EXPECT_EQ(untouched(scales + 2 * row * kv.row_scales, 2 * kv.row_scales), !scales_written)
          << to_string(type) << " row " << row;
    }
  }
}

}  // namespace
}  // namespace fixpoint::kernels::cuda
