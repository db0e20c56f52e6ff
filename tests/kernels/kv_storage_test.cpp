#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

class KvStorageTest : public BackendTest {};

TEST_P(KvStorageTest, EveryTypeIsStored) {
  for (const KvType type : kKvTypes) EXPECT_NO_THROW(static_cast<void>(backend_->allocate_kv({2, 16, 1, 64, type}))) << to_string(type);
}

TEST_P(KvStorageTest, TakesWhatItSaysForBlocksAndHeadsOfAnySize) {
  constexpr std::size_t kLargestPage = std::size_t{2} << 20U;
  constexpr std::int32_t kBlocks = 10;
  for (const KvType type : kKvTypes) {
    for (const std::int32_t block_size : {1, 4, 8, 16, 24, 256}) {
      for (const std::int32_t head_dim : {16, 20, 33, 64, 128}) {
        const auto shape = [&](std::int32_t blocks) { return KvShape{blocks, block_size, 2, head_dim, type}; };
        const std::size_t block = backend_->kv_bytes(shape(1));
        EXPECT_GE(block, static_cast<std::size_t>(2 * 2 * block_size * kv_row_bytes(type, head_dim)));
        EXPECT_EQ(backend_->kv_bytes(shape(kBlocks)), kBlocks * block);
        const std::size_t taken = backend_->allocate_kv(shape(kBlocks)).storage.bytes();
        EXPECT_GE(taken, kBlocks * block) << to_string(type) << " blocks of " << block_size << " dim " << head_dim;
        EXPECT_LT(taken, kBlocks * block + kLargestPage) << to_string(type) << " blocks of " << block_size << " dim " << head_dim;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, KvStorageTest, ::testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace fixpoint::kernels
