#pragma once

#include <string>

namespace fixpoint::sandbox::detail {

/// The broker: single-threaded, small, started before anything else is. Takes frames from `control` (descriptor 3), makes
/// the runs, reaps and accounts for them, and ends with everything it made when the service closes the socket.
/// `user_namespace`: it stands in one of its own; otherwise `failure` says why not (empty for root, who needs none).
int run_broker(int control, bool user_namespace, const std::string& failure);

/// The program that proves, from inside a run, what surrounds it: prints "<protection> <0|1> <proof>" lines.
int run_probe();

}  // namespace fixpoint::sandbox::detail
