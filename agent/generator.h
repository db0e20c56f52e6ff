#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/chat_template.h"

namespace fixpoint::agent {

using engine::Message;
using engine::Role;

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of the prompt, served from a prefix cache
  std::int64_t completion_tokens = 0;
  bool operator==(const Usage&) const = default;
  Usage& operator+=(const Usage& other);
};

/// How the program of an answer begins where the task settles it: a writer that was trained to be given it need not find it.
struct ProgramStart {
  std::string fence;  ///< the line that opens a program, its end included
  std::string text;   ///< what follows it
};

struct GenerateRequest {
  std::vector<Message> messages;
  std::string session;  ///< generations of one session share a prefix: it is kept at hand between them
  std::int64_t max_tokens = 1024;
  std::size_t max_bytes = std::size_t{1} << 20;  ///< text beyond this is not read
  double temperature = 0.0;
  double top_p = 1.0;
  std::uint64_t seed = 0;
  std::string prediction;  ///< text that the answer is likely to resemble (the program under repair); may be empty
  std::optional<ProgramStart> program_start;  ///< a generator may put it in once the answer opens its program; unset: nothing is settled
  std::chrono::milliseconds timeout{120'000};
};

enum class Finish : std::uint8_t { stop, length };
[[nodiscard]] std::string_view to_string(Finish finish);

struct Generation {
  std::string text;  ///< valid UTF-8
  Finish finish = Finish::stop;
  Usage usage;
  std::chrono::milliseconds elapsed{0};  ///< 0: the caller's own measure counts
};

struct GenerateError {
  enum class Kind : std::uint8_t {
    cancelled,
    timeout,
    too_long,     ///< the prompt does not fit the model's context
    unavailable,  ///< not reachable, overloaded, broken off: worth another try
    refused,      ///< key, model name or request not accepted: not worth another try
    malformed,    ///< the answer can't be read
    exhausted,    ///< a script has no more answers
  };
  Kind kind = Kind::unavailable;
  std::string detail;
  std::string partial;     ///< text that had arrived
  Usage usage;
};
[[nodiscard]] std::string_view to_string(GenerateError::Kind kind);

/// Text as it is written; pieces of one generation, joined, are Generation::text. Called on the generating thread.
using OnText = std::function<void(std::string_view)>;

/// Who writes text. generate() blocks its thread until the text is whole, obeys the stop token and the timeout, and may be
/// called from many threads at once (parallel drafts).
class Generator {
 public:
  virtual ~Generator() = default;
  [[nodiscard]] virtual tl::expected<Generation, GenerateError> generate(const GenerateRequest& request,
                                                                         const OnText& on_text,
                                                                         std::stop_token stop) = 0;
  /// What to call it in records: a model's name or a server's address, never with a key.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Nothing will be asked for this session for now: what was kept at hand for it may go.
  virtual void release(std::string_view /*session*/) {}
};

}  // namespace fixpoint::agent
