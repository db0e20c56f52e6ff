#include "server/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fixpoint::server {
namespace {

/// Time until a debt is paid off, in whole seconds, rounded up once.
std::chrono::seconds until_paid(double debt, double per_minute) {
  return std::chrono::seconds(std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(60 * debt / per_minute)), 1, 3600));
}

}  // namespace

void Admission::pay(Account& account, const Limits& limits, Clock::time_point now) {
  const double minutes = std::chrono::duration<double, std::ratio<60>>(now - std::exchange(account.paid, now)).count();
  // A minute's worth may be spent at once: the debt counts from below zero.
  const auto settle = [minutes](double& debt, double per_minute) { debt = std::max(-per_minute, debt - minutes * per_minute); };
  settle(account.tokens, limits.tokens_per_minute ? static_cast<double>(*limits.tokens_per_minute) : 0.0);
  settle(account.sandbox_ms, limits.sandbox_per_minute ? static_cast<double>(limits.sandbox_per_minute->count()) : 0.0);
}

tl::expected<Admission::Place, Busy> Admission::begin(const Principal& who, Clock::time_point now) {
  const std::scoped_lock lock(state_->mutex);
  const auto [found, fresh] = state_->accounts.try_emplace(who.token_id);
  Account& account = found->second;
  const Limits& limits = who.limits;
  if (fresh) {
    account.tokens = -static_cast<double>(limits.tokens_per_minute.value_or(0));
    account.sandbox_ms = -static_cast<double>(limits.sandbox_per_minute.value_or(std::chrono::milliseconds(0)).count());
    account.paid = now;
  }
  pay(account, limits, now);
  if (state_->sessions >= state_->options.max_sessions) {
    return tl::unexpected(Busy{"sessions", "the server is busy with as much as it may do at once"});
  }
  if (limits.sessions && account.sessions >= *limits.sessions) {
    return tl::unexpected(Busy{"sessions", "this token may have " + std::to_string(*limits.sessions) + " at work at once"});
  }
  if (limits.tokens_per_minute && account.tokens > -1) {
    const auto per_minute = static_cast<double>(*limits.tokens_per_minute);
    return tl::unexpected(Busy{"tokens_per_minute", "this token may have " + std::to_string(*limits.tokens_per_minute) + " tokens written a minute",
                               until_paid(account.tokens + 1, std::max(per_minute, 1.0))});
  }
  if (limits.sandbox_per_minute && account.sandbox_ms > -1) {
    const auto per_minute = static_cast<double>(limits.sandbox_per_minute->count());
    return tl::unexpected(Busy{"sandbox_per_minute", "this token may use the sandbox for " + std::to_string(limits.sandbox_per_minute->count()) + " ms a minute",
                               until_paid(account.sandbox_ms + 1, std::max(per_minute, 1.0))});
  }
  ++account.sessions;
  ++state_->sessions;
  return Place(state_, Kind::session, who.token_id);
}

tl::expected<Admission::Place, Busy> Admission::connect_address(const std::string& address) {
  const std::scoped_lock lock(state_->mutex);
  int& count = state_->addresses[address];
  if (state_->connections >= state_->options.max_connections) return tl::unexpected(Busy{"connections", "the server has as many connections as it may"});
  if (count >= state_->options.max_connections_per_address) {
    return tl::unexpected(Busy{"connections", "this address has as many connections as it may"});
  }
  ++count;
  ++state_->connections;
  return Place(state_, Kind::address, address);
}

tl::expected<Admission::Place, Busy> Admission::connect_token(const Principal& who) {
  const std::scoped_lock lock(state_->mutex);
  Account& account = state_->accounts[who.token_id];
  if (account.connections >= who.limits.connections.value_or(state_->options.max_connections_per_address)) {
    return tl::unexpected(Busy{"connections", "this token has as many connections as it may"});
  }
  ++account.connections;
  return Place(state_, Kind::token, who.token_id);
}

void Admission::spend(const Principal& who, std::int64_t tokens, std::chrono::milliseconds sandbox, Clock::time_point now) {
  const std::scoped_lock lock(state_->mutex);
  Account& account = state_->accounts[who.token_id];
  pay(account, who.limits, now);
  if (who.limits.tokens_per_minute) account.tokens += static_cast<double>(tokens);
  if (who.limits.sandbox_per_minute) account.sandbox_ms += static_cast<double>(sandbox.count());
}

int Admission::sessions() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->sessions;
}

int Admission::connections() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->connections;
}

Admission::Place::Place(Place&& other) noexcept
    : state_(std::move(other.state_)), kind_(std::exchange(other.kind_, Kind::none)), key_(std::move(other.key_)) {}

Admission::Place& Admission::Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  leave();
  state_ = std::move(other.state_);
  kind_ = std::exchange(other.kind_, Kind::none);
  key_ = std::move(other.key_);
  return *this;
}

Admission::Place::~Place() { leave(); }

void Admission::Place::leave() noexcept {
  const Kind kind = std::exchange(kind_, Kind::none);
  if (kind == Kind::none) return;
  const std::scoped_lock lock(state_->mutex);
  switch (kind) {
    case Kind::none: break;
    case Kind::session:
      --state_->sessions;
      --state_->accounts[key_].sessions;
      break;
    case Kind::token: --state_->accounts[key_].connections; break;
    case Kind::address: {
      --state_->connections;
      const auto found = state_->addresses.find(key_);
      if (--found->second == 0) state_->addresses.erase(found);  // so that addresses do not pile up
      break;
    }
  }
}

}  // namespace fixpoint::server
