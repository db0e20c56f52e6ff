#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/drafter.h"
#include "engine/engine_stats.h"
#include "engine/request.h"
#include "engine/step_model.h"
#include "engine/tokenizer.h"

namespace fixpoint::engine {

/// Whether steps verify drafts of the tokens to come. The tokens are the same in all cases, unless the model's rows depend on
/// what shares their step (CudaProducts::fastest): drafts are company.
enum class Speculation : std::uint8_t {
  off,
  measured,  ///< as far as measured times and the drafts' record say that it is faster
  always,    ///< every draft as long as it is, whatever it costs: for tests and measurements
};

struct EngineOptions {
  std::optional<std::size_t> kv_memory_bytes;  ///< unset: `kv_memory_fraction` of the memory that is available now
  double kv_memory_fraction = 0.5;
  kernels::KvType kv_type = kernels::KvType::f16;
  int block_size = 16;            ///< tokens
  int max_running = 256;          ///< sequences in one step
  int max_step_tokens = 512;      ///< decode, prefill and verification together; at least max_running
  int max_queued_requests = 1024; ///< submitted and not finished; beyond it `submit` says queue_full
  int ageing_steps = 64;          ///< waiting so many steps is worth one level of priority
  double max_pinned_fraction = 0.5;  ///< of the blocks; the oldest pins end first
  Speculation speculation = Speculation::measured;
  MakeDrafter drafter = nullptr;  ///< unset: the engine's own, `make_drafter`
};

struct EngineError {
  std::string field;
  std::string detail;
  [[nodiscard]] std::string message() const { return field + ": " + detail; }
};

namespace detail {
class Inbox;
class Delivery;
}  // namespace detail

/// A request in the engine. Destroying it cancels what is not finished, in whatever state it is; its blocks are free
/// within two steps. When the destructor returns, the callback is not running and never runs again (unless the handle is
/// destroyed inside its own callback). So: do not destroy it while holding a lock that the callback takes.
/// May outlive the engine. Any one thread at a time.
class RequestHandle {
 public:
  RequestHandle() = default;
  RequestHandle(RequestHandle&& other) noexcept;
  RequestHandle& operator=(RequestHandle&& other) noexcept;
  ~RequestHandle();

  /// Ends the request; its samples report FinishReason::cancelled through the callback.
  void cancel();
  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// The seed in use: the request's own or the one the engine drew.
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  friend class Engine;
  RequestHandle(std::uint64_t id, std::uint64_t seed, std::shared_ptr<detail::Inbox> inbox,
                std::shared_ptr<detail::Delivery> delivery);
  void drop() noexcept;

  std::uint64_t id_ = 0, seed_ = 0;
  std::shared_ptr<detail::Inbox> inbox_;        // shared: a handle may outlive the engine
  std::shared_ptr<detail::Delivery> delivery_;  // shared with the engine thread, which calls through it
};

/// Keeps a cached prefix from being evicted until it is destroyed or its time is over. May outlive the engine.
class Pin {
 public:
  Pin() = default;
  Pin(Pin&& other) noexcept;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();

 private:
  friend class Engine;
  Pin(std::uint64_t id, std::shared_ptr<detail::Inbox> inbox);
  void drop() noexcept;

  std::uint64_t id_ = 0;
  std::shared_ptr<detail::Inbox> inbox_;
};

/// Tokens in, tokens out, for any number of requests at once. Owns the model, the tokenizer, the KV cache and one
/// thread that does everything; public functions may be called from any thread. Destroying it ends what is in flight
/// with FinishReason::cancelled, then joins the thread.
class Engine {
 public:
  /// Sizes and allocates the KV memory, starts the thread. Error: an option out of range, or a budget too small for a
  /// single block. `model.vocab_size()` must be at least `tokenizer.size()`.
  [[nodiscard]] static tl::expected<std::unique_ptr<Engine>, EngineError> create(std::unique_ptr<StepModel> model,
                                                                                 Tokenizer tokenizer,
                                                                                 const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Queues a request. `on_output` is called on the engine's thread, at least once per sample unless the handle is
  /// dropped before; the first call may come before `submit` returns.
  [[nodiscard]] tl::expected<RequestHandle, SubmitError> submit(Request request, OnOutput on_output);
  /// Submits and waits. Not from a callback.
  [[nodiscard]] tl::expected<Completion, SubmitError> generate(Request request);

  /// Pins what is cached of `tokens` for the tenant when the next step begins; what isn't cached is not computed.
  [[nodiscard]] Pin pin(std::string tenant, std::span<const TokenId> tokens, std::chrono::milliseconds ttl);

  /// Nothing will be asked for the session for now: what its last request keeps pinned (Request::pin_ttl) may go.
  void end_session(std::string tenant, std::string session);

  /// A consistent snapshot as of the last step. An output is handed out when the stats that count it are published.
  [[nodiscard]] EngineStats stats() const;

  [[nodiscard]] const Tokenizer& tokenizer() const;
  /// Longest sequence, prompt and output: the model's context, or what the KV memory holds if that is less.
  [[nodiscard]] std::int64_t max_sequence_tokens() const;
  [[nodiscard]] const EngineOptions& options() const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Bytes a process could allocate now without swapping (MemAvailable); 0 where the system doesn't say.
[[nodiscard]] std::size_t available_memory_bytes();

}  // namespace fixpoint::engine
