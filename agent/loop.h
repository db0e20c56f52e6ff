#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "agent/event.h"
#include "agent/progress.h"

namespace fixpoint::agent {

class Journal;

/// Who does the work. Not owned; all of them outlive the loop and may serve many loops at once.
struct Services {
  Generator* model = nullptr;
  Generator* specialist = nullptr;  ///< may be null: then the ladder must not name it
  Generator* explainer = nullptr;
  Checker* checker = nullptr;
  Journal* journal = nullptr;  ///< may be null: nothing is kept, nothing can be resumed
};

struct LoopError {
  enum class Kind : std::uint8_t {
    invalid,     ///< the task or the options
    unknown,     ///< no such session
    busy,        ///< another process or thread runs this session
    finished,    ///< nothing is left to do in this session
    journal,     ///< it can't be written or read: the loop stops rather than go on unrecorded
  };
  Kind kind = Kind::invalid;
  std::string detail;
};

struct Result {
  std::string session;  ///< empty without a journal
  Ended end;
  std::string program;  ///< the best attempt's; empty where there is none
  Progress progress;
};

/// Every event, in order, after it is in the journal; on the thread that runs the loop.
using OnEvent = std::function<void(const Stamped&)>;

/// The round loop: generate, execute, explain, repair. run() blocks its thread until the turn ends; it returns within a
/// moment of a stop request, and always with an end. One Loop may be used by many threads at once.
class Loop {
 public:
  explicit Loop(Services services, Budget* batch = nullptr) : services_(services), batch_(batch) {}

  /// `session` names the new session; empty: one is made up.
  [[nodiscard]] tl::expected<Result, LoopError> run(const Task& task, const LoopOptions& options, std::stop_token stop,
                                                    const OnEvent& on_event, const std::string& session = {});

  /// Goes on with a session that a crash, a cancel, a failure or a hand-over interrupted, from its last finished step.
  /// Only events that are new are announced.
  [[nodiscard]] tl::expected<Result, LoopError> resume(const std::string& session, std::stop_token stop,
                                                       const OnEvent& on_event);

 private:
  Services services_;
  Budget* batch_;
};

/// "1f0c…", 16 hex digits, from the operating system's randomness.
[[nodiscard]] std::string new_session_id();

}  // namespace fixpoint::agent
