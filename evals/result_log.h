#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "evals/record.h"

namespace fixpoint::evals {

/// results.jsonl: the run, then one record a line, in the order in which they were done; for a key, the last line counts.
struct StoredRun {
  RunInfo info;
  std::map<std::string, Record> records;  // by key
};

/// Reads a results file (or the one in a folder). A last line without an end, as a killed run leaves it, is left out; any
/// other broken line is an error with its number.
[[nodiscard]] tl::expected<StoredRun, std::string> read_results(const std::filesystem::path& path);

/// The records in the order of their tasks and samples.
[[nodiscard]] std::vector<Record> in_order(const StoredRun& run);

/// The file of a run that goes on. Each record is one write, so that a kill at any moment loses at most the record that is
/// being written. Not thread-safe. Move-only; closes the file.
class ResultLog {
 public:
  /// Starts a new file; an existing one is an error (nothing is overwritten).
  [[nodiscard]] static tl::expected<ResultLog, std::string> create(const std::filesystem::path& file, const RunInfo& info);
  /// Goes on with an existing file, after cutting off a half line. The file must be of the same run.
  [[nodiscard]] static tl::expected<ResultLog, std::string> append_to(const std::filesystem::path& file, const RunInfo& info, StoredRun& stored);

  ResultLog(ResultLog&& other) noexcept;
  ResultLog& operator=(ResultLog&&) = delete;
  ~ResultLog();

  /// False where it could not be written (a full disk); nothing of it is in the file then.
  [[nodiscard]] bool append(const Record& record);

 private:
  explicit ResultLog(int fd) : fd_(fd) {}
  int fd_;
};

/// Replaces the file by one whose records are in order, at once.
[[nodiscard]] tl::expected<void, std::string> write_in_order(const std::filesystem::path& file, const RunInfo& info, const std::vector<Record>& records);

/// Writes a whole file so that a reader sees the old one or the new one.
[[nodiscard]] tl::expected<void, std::string> write_whole(const std::filesystem::path& file, std::string_view content);

}  // namespace fixpoint::evals
