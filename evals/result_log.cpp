#include "evals/result_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

std::string system_error(const std::filesystem::path& file) { return file.string() + ": " + std::strerror(errno); }

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::filesystem::path results_file(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code) ? path / "results.jsonl" : path;
}

struct Parsed {
  StoredRun run;
  std::size_t whole_bytes = 0;  // up to the end of the last whole line
};

tl::expected<Parsed, std::string> parse_results(std::string_view text, const std::string& name) {
  Parsed out;
  std::size_t line = 0;
  while (out.whole_bytes < text.size()) {
    const std::size_t end = text.find('\n', out.whole_bytes);
    if (end == std::string_view::npos) break;  // cut off
    const std::string_view content = text.substr(out.whole_bytes, end - out.whole_bytes);
    out.whole_bytes = end + 1;
    ++line;
    const std::string where = name + ":" + std::to_string(line) + ": ";
    if (line == 1) {
      auto info = parse_run_info(content);
      if (!info) return tl::unexpected(where + "is no description of a run: " + info.error());
      out.run.info = *std::move(info);
      continue;
    }
    auto record = parse_record(content);
    if (!record) return tl::unexpected(where + record.error());
    std::string key = record->key;
    out.run.records.insert_or_assign(std::move(key), *std::move(record));
  }
  if (line == 0) return tl::unexpected(name + ": holds no run");
  return out;
}

}  // namespace

tl::expected<StoredRun, std::string> read_results(const std::filesystem::path& path) {
  const std::filesystem::path file = results_file(path);
  const auto bytes = detail::read_file(file);
  if (!bytes) return tl::unexpected(bytes.error().text());
  auto parsed = parse_results(*bytes, file.string());
  if (!parsed) return tl::unexpected(parsed.error());
  return std::move(parsed->run);
}

std::vector<Record> in_order(const StoredRun& run) {
  std::vector<Record> out;
  for (const auto& [key, record] : run.records) out.push_back(record);
  std::sort(out.begin(), out.end(), [](const Record& a, const Record& b) {
    return std::tie(a.index, a.sample, a.key) < std::tie(b.index, b.sample, b.key);
  });
  return out;
}

tl::expected<ResultLog, std::string> ResultLog::create(const std::filesystem::path& file, const RunInfo& info) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return tl::unexpected(system_error(file));
  ResultLog log(fd);
  if (!write_all(fd, to_json_line(info) + "\n")) return tl::unexpected(system_error(file));
  return log;
}

tl::expected<ResultLog, std::string> ResultLog::append_to(const std::filesystem::path& file, const RunInfo& info, StoredRun& stored) {
  const auto bytes = detail::read_file(file);
  if (!bytes) return tl::unexpected(bytes.error().text());
  auto parsed = parse_results(*bytes, file.string());
  if (!parsed) return tl::unexpected(parsed.error());
  if (!parsed->run.info.same_run(info)) {
    const std::string difference = parsed->run.info.difference(info);
    return tl::unexpected(file.string() + ": is of another run (" + (difference.empty() ? "other tasks are selected" : difference) + ")");
  }
  const int fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return tl::unexpected(system_error(file));
  ResultLog log(fd);
  if (::ftruncate(fd, static_cast<off_t>(parsed->whole_bytes)) != 0) return tl::unexpected(system_error(file));
  stored = std::move(parsed->run);
  return log;
}

ResultLog::ResultLog(ResultLog&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ResultLog::~ResultLog() {
  if (fd_ >= 0) ::close(fd_);
}

bool ResultLog::append(const Record& record) {
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  if (write_all(fd_, to_json_line(record) + "\n")) return true;
  // Half a line would spoil the next one.
  if (before >= 0) (void)!::ftruncate(fd_, before);
  return false;
}

tl::expected<void, std::string> write_whole(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path temporary = file.string() + ".new";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return tl::unexpected(system_error(temporary));
  const bool written = write_all(fd, content);
  if (::close(fd) != 0 || !written) return tl::unexpected(system_error(temporary));
  std::error_code code;
  std::filesystem::rename(temporary, file, code);
  if (code) return tl::unexpected(file.string() + ": " + code.message());
  return {};
}

tl::expected<void, std::string> write_in_order(const std::filesystem::path& file, const RunInfo& info, const std::vector<Record>& records) {
  std::string content = to_json_line(info) + "\n";
  for (const Record& record : records) content += to_json_line(record) + "\n";
  return write_whole(file, content);
}

}  // namespace fixpoint::evals
