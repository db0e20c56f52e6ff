#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// A compiled program: a sealed memory file, which is run, or copied into the box, without its bytes in a process's memory.
struct Compiled {
  UniqueFd file;
  std::uint64_t bytes = 0;
};

/// Compiled programs by everything that went into them, least recently used out first. The key is the whole input, so that
/// no two programs can collide. Thread-safe.
class CompileCache {
 public:
  explicit CompileCache(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  [[nodiscard]] std::shared_ptr<const Compiled> find(const std::string& key);
  void insert(const std::string& key, std::shared_ptr<const Compiled> program);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Compiled> program;
    [[nodiscard]] std::uint64_t bytes() const { return key.size() + program->bytes; }
  };

  const std::uint64_t max_bytes_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
};

}  // namespace fixpoint::sandbox::detail
