#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "agent/loop.h"
#include "server/principal.h"
#include "server/recent_trips.h"

namespace fixpoint::engine {
class LanguageModel;
}

namespace fixpoint::server {

class Admission;
class EventLog;
class Metrics;
class Tracer;

/// What requests work with. Not owned; all of it outlives the server and may be used from any thread.
struct Services {
  agent::Services agent;          ///< the loop's workers; `journal` is never null
  /// The same for one tenant: its generations share cached prefixes with nobody else. Unset: `agent` is for everybody.
  std::function<agent::Services(const std::string& tenant)> agent_for;
  agent::LoopOptions loop;        ///< where a session asks for nothing else
  int max_running_sessions = 16;  ///< agent loops at once, each with a thread of its own

  engine::LanguageModel* model = nullptr;  ///< null where the model is another server: no completions here
  std::string model_id;                    ///< what clients call it

  Admission* admission = nullptr;
  Metrics* metrics = nullptr;
  EventLog* log = nullptr;
  Tracer* tracer = nullptr;  ///< may be null: nothing is exported

  mutable RecentTrips recent_trips;  ///< of the engine's watchdog
  std::atomic<bool> draining = false;  ///< the server is about to end: nothing new begins

  /// Goes on with a session that waits (a hint was given, a program was handed in), in the background; set by whoever
  /// runs sessions. Unset: it waits until somebody resumes it.
  std::function<void(const std::string& tenant, const std::string& session)> resume_session;

  [[nodiscard]] agent::Services agent_of(const std::string& tenant) const { return agent_for ? agent_for(tenant) : agent; }
};

}  // namespace fixpoint::server
