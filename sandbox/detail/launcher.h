#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "sandbox/detail/broker_process.h"
#include "sandbox/detail/frame.h"
#include "sandbox/detail/monitor.h"

namespace fixpoint::sandbox::detail {

/// One process run: a frame, what is fed and what is limited.
struct LaunchRequest {
  LaunchFrame frame;
  MonitorOptions monitor;
  std::optional<JudgeChannel> judge;
  int executable = -1;  ///< file to run instead of frame.arguments[0], or to place (LaunchFrame::place_executable)
};

/// Makes the pipes and hands the frame to the broker. The run's own verdict where that fails.
[[nodiscard]] tl::expected<RunEnds, SetupError> start_run(BrokerProcess& broker, LaunchFrame frame,
                                                          const std::optional<JudgeChannel>& judge, int executable);

/// start_run, then watch the run to its end.
[[nodiscard]] RunResult launch(BrokerProcess& broker, LaunchRequest request, std::stop_token stop);

/// At most `limit` bytes of a file that a run left.
[[nodiscard]] std::string read_artefact(int file, std::uint64_t limit);

}  // namespace fixpoint::sandbox::detail
