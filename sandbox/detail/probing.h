#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "sandbox/detail/broker_process.h"
#include "sandbox/detail/monitor.h"
#include "sandbox/sandbox.h"

namespace fixpoint::sandbox::detail {

/// The probe program's root: nothing but devices.
inline constexpr std::uint32_t kProbeTemplate = 100;

/// Whether the kernel can hand denied calls to a supervisor.
[[nodiscard]] bool notification_available();

[[nodiscard]] std::uint32_t protection_bits(std::span<const Protection> protections);

/// Without these a host is refused unless the operator names the weaker mode.
[[nodiscard]] std::span<const Protection> required_protections();

/// Starts the broker, runs the probe program in a sandbox and joins what both found.
[[nodiscard]] tl::expected<std::vector<Probe>, StartError> probe_protections(BrokerProcess& broker,
                                                                             std::span<const Protection> without);

/// Unsafe names, zero bytes and impossible limits, before anything is made.
[[nodiscard]] std::optional<SetupError> check_job(const Job& job, const Toolchain& tool);

/// A compiler's end, seen from the job.
[[nodiscard]] Outcome compile_outcome(const Outcome& outcome);

/// One file of the working directory of a run that is over. `box` is -1 where there is none.
[[nodiscard]] Artefact take_artefact(int box, const std::string& path, std::uint64_t limit);

}  // namespace fixpoint::sandbox::detail
