#include "tests/engine/models/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace fixpoint::test_models {

TemporaryDirectory::TemporaryDirectory() {
  auto name = (std::filesystem::temp_directory_path() / "fixpoint-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace fixpoint::test_models
