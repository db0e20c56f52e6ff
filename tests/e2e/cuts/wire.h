#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace fixpoint::cuts {

using Json = nlohmann::json;

/// The connection broke, or is not there.
struct Broken {};

/// A WebSocket connection to /acp that is cut, from another thread, when its time is over. One thread uses it.
class Wire {
 public:
  /// `reset`: a cut is a TCP reset and not an end. Throws Broken.
  Wire(std::uint16_t port, std::chrono::microseconds life, bool reset);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Sends a request and reads until its answer; every update's parameters are handed over. Questions of the agent are
  /// answered with an error. The result; throws Broken, and std::runtime_error on an error that it answers with.
  Json call(const std::string& method, const Json& params, const std::function<void(const Json&)>& on_update);
  /// Whether it broke because its time was over.
  [[nodiscard]] bool cut() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::cuts
