// What the emulated device finds: each of these kernels is wrong in a way that a real device might let pass.
#include <cuda_platform/platform.h>
#include <cuda_platform/tensor_cores.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/handles.h"
#include "kernels/cuda/launch.h"

namespace fixpoint::kernels::cuda {
namespace {

int thread() { return static_cast<int>(threadIdx.x); }

/// Runs a kernel of one block; what the emulation says of it, empty when all is well.
template <class... Parameters, class... Arguments>
std::string fault_of(unsigned threads, std::size_t shared_floats, void (*kernel)(Parameters...), Arguments... arguments) {
  const Stream stream;
  launch({1, threads, shared_floats * sizeof(float), stream.get(), "test"}, kernel, arguments...);
  try {
    stream.synchronize();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void mark(int* out, int width) {
  out[static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x) * width + thread()] += 1 + static_cast<int>(threadIdx.y);
}

TEST(EmulationTest, RunsEveryThreadOfEveryBlockOnce) {
  std::vector<int> out(2 * 3 * 40);
  const Stream stream;
  launch({{3, 2}, 40, 0, stream.get(), "mark"}, mark, out.data(), 40);
  EXPECT_EQ(out, std::vector<int>(out.size(), 0)) << "work begins when somebody waits";
  stream.synchronize();
  EXPECT_EQ(out, std::vector<int>(out.size(), 1));
}

void reverse_lanes(int* out, unsigned* votes) {
  const int lane = thread() % kWarpSize;
  out[thread()] = __shfl_xor_sync(kAllLanes, thread(), 31);
  votes[thread()] = __ballot_sync(kAllLanes, lane % 3 == 0);
  out[thread()] = 10 * __shfl_sync(kAllLanes, out[thread()], lane / 2 * 2);
}

TEST(EmulationTest, LanesExchangeAndVote) {
  std::vector<int> out(64);
  std::vector<unsigned> votes(64);
  ASSERT_EQ(fault_of(64, 0, reverse_lanes, out.data(), votes.data()), "");
  for (int i = 0; i < 64; ++i) {
    const int even = i / 2 * 2;
    EXPECT_EQ(out[static_cast<std::size_t>(i)], 10 * (even / 32 * 32 + 31 - even % 32));
    EXPECT_EQ(votes[static_cast<std::size_t>(i)], 0x49249249U);
  }
}

void neighbours(float* out, bool wait, bool warp_only) {
  SharedArena arena;
  const auto values = arena.take<float>(static_cast<int>(blockDim.x));
  values[thread()] = static_cast<float>(thread());
  if (wait && warp_only) __syncwarp();
  if (wait && !warp_only) __syncthreads();
  const int next = warp_only ? thread() / 32 * 32 + (thread() + 1) % 32 : (thread() + 1) % static_cast<int>(blockDim.x);
  out[thread()] = values[next];
}

TEST(EmulationTest, ABarrierOrdersSharedMemory) {
  std::vector<float> out(96);
  EXPECT_EQ(fault_of(96, 96, neighbours, out.data(), true, false), "");
  EXPECT_EQ(out[95], 0.0F);
  EXPECT_EQ(fault_of(96, 96, neighbours, out.data(), true, true), "");
}

TEST(EmulationTest, AMissingBarrierIsARaceWhateverTheOrder) {
  std::vector<float> out(96);
  EXPECT_TRUE(contains(fault_of(96, 96, neighbours, out.data(), false, false), "shared memory, byte"));
  EXPECT_TRUE(contains(fault_of(96, 96, neighbours, out.data(), false, true), "shared memory, byte"));
}

void write_after_read(float* out) {
  SharedArena arena;
  const auto word = arena.take<float>(1);
  if (thread() == 0) word[0] = 1.0F;
  __syncthreads();
  out[thread()] = word[0];
  if (thread() == 40) word[0] = 2.0F;  // others may not have read yet
}

TEST(EmulationTest, AWriteBesideReadsIsARace) {
  std::vector<float> out(64);
  EXPECT_TRUE(contains(fault_of(64, 1, write_after_read, out.data()), "another thread reads"));
}

void warp_barrier_between_warps(float* out) {
  SharedArena arena;
  const auto word = arena.take<float>(1);
  if (thread() == 0) word[0] = 1.0F;
  __syncwarp();
  out[thread()] = thread() < 64 ? word[0] : 0.0F;
}

TEST(EmulationTest, AWarpBarrierOrdersOneWarpOnly) {
  std::vector<float> out(64);
  EXPECT_EQ(fault_of(32, 1, warp_barrier_between_warps, out.data()), "");
  EXPECT_TRUE(contains(fault_of(64, 1, warp_barrier_between_warps, out.data()), "another thread writes"));
}

void read_unwritten(float* out) {
  SharedArena arena;
  out[thread()] = arena.take<float>(32)[thread()];
}
void index_outside(int index) {
  SharedArena arena;
  arena.take<float>(8)[index] = 1.0F;
}
void take_too_much() {
  SharedArena arena;
  static_cast<void>(arena.take<float>(9));
}
void partial_barrier() {
  if (thread() < 40) __syncthreads();
}
void partial_shuffle(int* out) {
  if (thread() < 7) out[thread()] = __shfl_xor_sync(kAllLanes, thread(), 1);
}
void misaligned(const float* from, float* out) { out[thread()] = load_floats4(from + 1).v[0]; }
void misaligned_store() {
  SharedArena arena;
  store_words4(arena.take<std::uint32_t>(8), 2, {{1, 2, 3, 4}});
}

TEST(EmulationTest, FindsWhatADeviceLeavesUndefined) {
  std::vector<float> out(64);
  std::vector<int> ints(64);
  EXPECT_TRUE(contains(fault_of(32, 32, read_unwritten, out.data()), "nobody has written"));
  EXPECT_TRUE(contains(fault_of(1, 8, index_outside, 8), "index 8"));
  EXPECT_TRUE(contains(fault_of(1, 8, index_outside, -1), "index -1"));
  EXPECT_TRUE(contains(fault_of(1, 8, take_too_much), "more shared memory"));
  EXPECT_TRUE(contains(fault_of(64, 0, partial_barrier), "barrier that not every thread"));
  EXPECT_TRUE(contains(fault_of(32, 0, partial_shuffle, ints.data()), "not every lane"));
  EXPECT_EQ(fault_of(32, 32, index_outside, 3), "block (0, 0, 0), thread (1, 0, 0): shared memory, byte 12: two threads write one word");
  const DeviceMemory memory(64);
  EXPECT_TRUE(contains(fault_of(1, 0, misaligned, memory.as<const float>(), out.data()), "multiple of 16"));
  EXPECT_TRUE(contains(fault_of(1, 8, misaligned_store), "multiple of 16"));
}

/// One product of 16 x 16 by 16 x 8, the lanes' words taken as tensor_cores.h says.
template <DType type>
void one_tile(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  const int g = thread() / 4;
  const int t = thread() % 4;
  const auto words_of_a = [&](int row, int col) { return a[16 * row + col] | static_cast<std::uint32_t>(a[16 * row + col + 1]) << 16U; };
  const auto words_of_b = [&](int row) { return b[8 * row + g] | static_cast<std::uint32_t>(b[8 * (row + 1) + g]) << 16U; };
  const std::uint32_t left[4] = {words_of_a(g, 2 * t), words_of_a(g + 8, 2 * t), words_of_a(g, 2 * t + 8), words_of_a(g + 8, 2 * t + 8)};
  const std::uint32_t right[2] = {words_of_b(2 * t), words_of_b(2 * t + 8)};
  float sums[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  multiply_tile<type>(sums, left, right);
  for (int i = 0; i < 4; ++i) d[8 * (g + i / 2 * 8) + 2 * t + i % 2] = sums[i];
}

TEST(EmulationTest, AWarpMultipliesATile) {
  std::vector<std::uint16_t> a(16 * 16), b(16 * 8);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = f32_to_f16(static_cast<float>(i % 7) - 3.0F + static_cast<float>(i / 16));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = f32_to_f16(static_cast<float>(i % 5) - 2.0F + static_cast<float>(i % 8));
  std::vector<float> d(16 * 8);
  ASSERT_EQ(fault_of(32, 0, one_tile<DType::f16>, a.data(), b.data(), d.data()), "");
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t col = 0; col < 8; ++col) {
      float expected = 1.0F;
      for (std::size_t k = 0; k < 16; ++k) expected += f16_to_f32(a[16 * row + k]) * f16_to_f32(b[8 * k + col]);
      EXPECT_EQ(d[8 * row + col], expected) << row << ", " << col;
    }
  }
}

void half_a_warp_multiplies(float* out) {
  float sums[4] = {};
  if (thread() < 16) multiply_tile<DType::bf16>(sums, {1, 2, 3, 4}, {5, 6});
  out[thread()] = sums[0];
}

TEST(EmulationTest, ATileNeedsTheWholeWarp) {
  std::vector<float> out(32);
  EXPECT_TRUE(contains(fault_of(32, 0, half_a_warp_multiplies, out.data()), "not every lane"));
}

void count_up(float* out) {
  SharedArena arena;
  const auto sum = arena.take<float>(1);
  if (thread() == 0) sum[0] = 0.0F;
  __syncthreads();
  atomic_add(sum[0], 1.0F);
  __syncthreads();
  out[thread()] = sum[0];
}

TEST(EmulationTest, AtomicsDoNotRaceWithEachOther) {
  std::vector<float> out(70);
  EXPECT_EQ(fault_of(70, 1, count_up, out.data()), "");
  EXPECT_EQ(out[69], 70.0F);
}

void count_threads(int* sum) { atomic_add(*sum, 1); }

TEST(EmulationTest, AtomicsReachDeviceMemoryFromEveryBlock) {
  int sum = 0;
  const Stream stream;
  launch({{3, 2}, 40, 0, stream.get(), "count_threads"}, count_threads, &sum);
  stream.synchronize();
  EXPECT_EQ(sum, 3 * 2 * 40);
}

TEST(EmulationTest, AGraphRepeatsWhatWasRecorded) {
  std::vector<int> out(8);
  const Stream stream;
  const Graph graph = Graph::capture(stream, [&] { launch({1, 8, 0, stream.get(), "mark"}, mark, out.data(), 8); });
  stream.synchronize();
  EXPECT_EQ(out[7], 0) << "recording does nothing";
  graph.launch(stream);
  graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(out, std::vector<int>(8, 2));
  EXPECT_THROW(static_cast<void>(Graph::capture(stream, [&] { stream.synchronize(); })), std::runtime_error);
  EXPECT_THROW(static_cast<void>(Graph::capture(stream, [] { const DeviceMemory memory(16); })), std::runtime_error);
}

TEST(EmulationTest, CopiesFromPinnedMemoryHappenLate) {
  const Stream stream;
  const PinnedMemory pinned(4);
  const DeviceMemory device(4);
  pinned.data()[0] = std::byte{1};
  check(cudaMemcpyAsync(device.data(), pinned.data(), 4, cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync");
  pinned.data()[0] = std::byte{2};  // a mistake that a test is to notice
  stream.synchronize();
  EXPECT_EQ(device.data()[0], std::byte{2});
}

}  // namespace
}  // namespace fixpoint::kernels::cuda
