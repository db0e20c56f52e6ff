#pragma once

#include "agent/event.h"
#include "server/principal.h"
#include "server/services.h"
#include "server/trace.h"

namespace fixpoint::server {

/// What the service notes of an agent's event: metrics, what the token has spent, a log line and spans. Whoever runs a
/// loop calls it once for each event. Thread-safe.
void record(const Services& services, const Principal& who, const TraceContext& trace, const agent::Stamped& stamped);

}  // namespace fixpoint::server
