#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>

#include "server/principal.h"

namespace fixpoint::server {

/// Not now.
struct Busy {
  std::string limit;   ///< "sessions", "tokens_per_minute", "sandbox_per_minute", "connections"
  std::string detail;  ///< one sentence for people
  std::chrono::seconds retry_after{1};
};

/// Who may begin what now. Thread-safe. What a token spends is booked when it is known, so a minute's limit may be
/// overstepped by what is under way; nothing new begins until time has paid for it.
class Admission {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    int max_connections = 4'096;
    int max_connections_per_address = 1'024;  ///< of a token that says nothing else, and of an address
    int max_sessions = 1'024;                 ///< at work, of all tokens together
  };
  Admission() : Admission(Options{}) {}
  explicit Admission(Options options) : state_(std::make_shared<State>(options)) {}

 private:
  struct Account {
    int sessions = 0;
    int connections = 0;
    double tokens = 0;   ///< debt, paid off as time passes
    double sandbox_ms = 0;
    Clock::time_point paid{};
  };
  struct State {
    explicit State(const Options& given) : options(given) {}
    Options options;
    std::mutex mutex;
    std::map<std::string, Account> accounts;
    std::map<std::string, int> addresses;
    int connections = 0;
    int sessions = 0;
  };
  enum class Kind : std::uint8_t { none, session, address, token };

 public:
  /// A place taken; its death gives it back. May outlive the Admission.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept;
    Place& operator=(Place&& other) noexcept;
    ~Place();

   private:
    friend class Admission;
    Place(std::shared_ptr<State> state, Kind kind, std::string key) : state_(std::move(state)), kind_(kind), key_(std::move(key)) {}
    void leave() noexcept;
    std::shared_ptr<State> state_;
    Kind kind_ = Kind::none;
    std::string key_;
  };

  /// An agent session or a completion begins to work.
  [[nodiscard]] tl::expected<Place, Busy> begin(const Principal& who, Clock::time_point now = Clock::now());
  /// A socket from this address; before anything is known about it. Local sockets have the address "".
  [[nodiscard]] tl::expected<Place, Busy> connect_address(const std::string& address);
  /// The same socket, once its token is known.
  [[nodiscard]] tl::expected<Place, Busy> connect_token(const Principal& who);

  /// Books what was used.
  void spend(const Principal& who, std::int64_t tokens, std::chrono::milliseconds sandbox, Clock::time_point now = Clock::now());

  [[nodiscard]] int sessions() const;
  [[nodiscard]] int connections() const;

 private:
  static void pay(Account& account, const Limits& limits, Clock::time_point now);
  std::shared_ptr<State> state_;  // shared with the places
};

}  // namespace fixpoint::server
