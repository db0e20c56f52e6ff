#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fixpoint::server {

/// Only ever grows.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Histogram {
 public:
  /// `bounds` ascend; one more bucket holds what lies above the last.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {}
  /// The same value so many times.
  void observe(double value, std::uint64_t times = 1);
  struct Snapshot {
    std::vector<std::uint64_t> counts;  ///< [bounds + 1], each bucket by itself
    double sum = 0;
  };
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] const std::vector<double>& bounds() const { return bounds_; }

 private:
  std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> counts_;  // guarded
  double sum_ = 0;                     // guarded
};

/// Seconds, from a millisecond to 43 minutes.
extern const std::vector<double> kLatencySeconds;
/// Seconds, from a tenth of a millisecond to ten seconds: how late a client hears of something.
extern const std::vector<double> kEventSeconds;
/// Powers of two up to 131,072.
extern const std::vector<double> kTokenCounts;

/// Name -> series, in Prometheus' text format. Thread-safe. References stay valid as long as the registry lives: look a
/// series up once where it is counted often.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// `name` without the prefix "fixpoint_"; counters end in "_total".
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::span<const double> bounds, const Labels& labels = {});

  struct Sample {
    std::string name;  ///< without the prefix
    std::string help;
    std::string type;  ///< "gauge" or "counter"
    Labels labels;
    double value = 0;
  };
  /// The whole text; `more` are values that others keep (the engine's statistics), those of one name next to each other.
  [[nodiscard]] std::string text(std::span<const Sample> more = {}) const;

 private:
  struct Family {
    std::string help;
    std::map<Labels, std::unique_ptr<Counter>> counters;
    std::map<Labels, std::unique_ptr<Histogram>> histograms;
  };
  Family& family(std::string_view name, std::string_view help);

  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;  // guarded by mutex_
};

}  // namespace fixpoint::server
