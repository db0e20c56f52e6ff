// The file that is part of the project, as those who run it read it.
#include "engine/model_file.h"

#include <gtest/gtest.h>

namespace fixpoint::engine {
namespace {

TEST(EmbeddedModelFileTest, AsksToBeGivenTheFirstWordsOfAProgram) {
  const auto file = ModelFile::open(FIXPOINT_EMBEDDED_MODEL);
  ASSERT_TRUE(file.has_value()) << file.error().message();
  EXPECT_TRUE(file->program_start_given());
  EXPECT_LT(file->file_bytes(), std::int64_t{30} << 20);
}

}  // namespace
}  // namespace fixpoint::engine
