#include "sandbox/detail/compile_cache.h"

namespace fixpoint::sandbox::detail {

std::shared_ptr<const Compiled> CompileCache::find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->program;
}

void CompileCache::insert(const std::string& key, std::shared_ptr<const Compiled> program) {
  const std::scoped_lock lock(mutex_);
  if (index_.contains(key)) return;
  entries_.push_front({key, std::move(program)});
  index_.emplace(entries_.front().key, entries_.begin());
  bytes_ += entries_.front().bytes();
  while (bytes_ > max_bytes_ && !entries_.empty()) {
    bytes_ -= entries_.back().bytes();
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace fixpoint::sandbox::detail
