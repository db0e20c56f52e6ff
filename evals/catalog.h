#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::evals {

/// A published benchmark file: where it comes from and how to know that it is the right one.
struct KnownFile {
  std::string_view benchmark;  // name for `fixpoint eval`; several files may carry one benchmark
  std::string_view path;       // below the data folder
  std::string_view sha256;     // of the file's bytes
  std::size_t tasks;
  std::string_view source;     // repository, commit and path
  std::string_view licence;
};

[[nodiscard]] std::span<const KnownFile> known_files();

/// The held-out split of the embedded model's task family, which is part of the program: `path` is below its data folder.
[[nodiscard]] const KnownFile& family_file();

/// The first file of the benchmark, or null.
[[nodiscard]] const KnownFile* find_known(std::string_view benchmark);

/// The known file with these bytes (the family's too), or null.
[[nodiscard]] const KnownFile* find_by_hash(std::string_view sha256);

enum class FileState { absent, good, other_bytes, unreadable };

struct FileReport {
  const KnownFile* known = nullptr;
  FileState state = FileState::absent;
  std::string sha256;     // as found
  std::size_t tasks = 0;  // as loaded
  std::string message;    // why not good
};

/// Hashes the file below `folder`, loads it and counts its tasks.
[[nodiscard]] FileReport check_file(const KnownFile& known, const std::filesystem::path& folder);

/// Looks for each known file below `folder`, hashes it, loads it and counts its tasks.
[[nodiscard]] std::vector<FileReport> check_files(const std::filesystem::path& folder);

}  // namespace fixpoint::evals
