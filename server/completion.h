#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/engine.h"
#include "server/admission.h"
#include "server/completion_format.h"
#include "server/openai.h"
#include "server/services.h"

namespace fixpoint::server {

/// A completion that the engine works on. Its death cancels what is not finished; the blocks are free within two steps.
/// Made on any thread, then used by one at a time.
class Completion {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes a place, tokenises, submits. `wake` is called on the engine's thread when take() has something after it had
  /// nothing; it must be quick, and may be called until the completion is dead.
  [[nodiscard]] static tl::expected<std::unique_ptr<Completion>, ApiError> start(const CompletionCall& call, const Services& services,
                                                                                 const HttpRequest& request, std::function<void()> wake);
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  [[nodiscard]] bool streams() const { return streams_; }

  struct Piece {
    std::string bytes;        ///< events of a stream; else the whole answer, once, at the end
    bool finished = false;
    int status = 200;         ///< of the answer, where it doesn't stream
    std::vector<Clock::time_point> made;  ///< when the engine gave out what is in `bytes`
  };
  /// What is new. Empty and not finished: nothing is.
  [[nodiscard]] Piece take();

 private:
  struct Item {
    int choice = 0;
    engine::Output output;
    Clock::time_point made;
  };
  class Inbox;
  Completion(const Services& services, const HttpRequest& request, const CompletionCall& call, std::vector<std::string> echoes);
  [[nodiscard]] tl::expected<void, ApiError> submit(const CompletionCall& call, std::vector<std::vector<engine::TokenId>> prompts);
  void observe(const Item& item);
  void finish(Piece& piece);

  const Services* services_;
  Principal who_;
  std::string session_;     // of the log's lines: the request's id
  std::string trace_id_;
  Clock::time_point arrived_;
  bool streams_;
  int unfinished_ = 0;
  bool told_end_ = false;
  std::string failure_;     // of the engine; empty: none
  bool shut_down_ = false;
  CompletionFormat format_;
  std::vector<Clock::time_point> last_made_;  // [choices]
  Admission::Place place_;
  std::shared_ptr<Inbox> inbox_;              // shared with the engine's callbacks
  std::vector<engine::RequestHandle> handles_;  // last: die first
};

}  // namespace fixpoint::server
