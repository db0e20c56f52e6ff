#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/cuts/process.h"

namespace fixpoint::load {

/// `fixpoint serve` on loopback with a folder of its own, and what can be seen of it from outside.
class Service {
 public:
  /// `model`: a model's file, or "script": instead, answers that hold no program, after 0.2 to 0.6 s:
  /// the processor stays free. Throws std::runtime_error.
  Service(const std::string& program, const std::string& model, std::vector<std::string> flags);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// The text of GET /metrics.
  [[nodiscard]] std::string metrics() const;
  /// Resident memory of the server's own process, bytes.
  [[nodiscard]] std::int64_t resident_bytes() const;
  /// CPU time of the server's own process so far, seconds.
  [[nodiscard]] double cpu_seconds() const;
  /// Processes below it: the sandbox's, those that stand ready included.
  [[nodiscard]] int processes() const;

 private:
  std::filesystem::path folder_;
  cuts::Process process_;
  std::uint16_t port_ = 0;
};

/// The value of a series without labels, or with any; 0 where it is not there.
[[nodiscard]] double value_of(const std::string& metrics, const std::string& name);

/// A histogram's counts by upper bound (seconds), cumulative, of its last bound all.
struct Buckets {
  std::vector<double> bounds;
  std::vector<double> counts;
  /// Linear within a bucket; seconds.
  [[nodiscard]] double quantile(double q) const;
  /// Part that lies at or below a bound.
  [[nodiscard]] double part_below(double bound) const;
};
[[nodiscard]] Buckets buckets_of(const std::string& metrics, const std::string& name);
[[nodiscard]] Buckets operator-(Buckets after, const Buckets& before);

}  // namespace fixpoint::load
