#include "agent/budget.h"

#include <algorithm>

#include "agent/detail/names.h"

namespace fixpoint::agent {

std::string_view to_string(Resource resource) { return detail::name_of(resource); }

Amounts& Amounts::operator+=(const Amounts& other) {
  rounds += other.rounds;
  tokens += other.tokens;
  wall += other.wall;
  sandbox += other.sandbox;
  return *this;
}

Amounts& Amounts::operator-=(const Amounts& other) {
  rounds -= other.rounds;
  tokens -= other.tokens;
  wall -= other.wall;
  sandbox -= other.sandbox;
  return *this;
}

Amounts min(const Amounts& a, const Amounts& b) {
  return {.rounds = std::min(a.rounds, b.rounds),
          .tokens = std::min(a.tokens, b.tokens),
          .wall = std::min(a.wall, b.wall),
          .sandbox = std::min(a.sandbox, b.sandbox)};
}

namespace {
Amounts not_negative(const Amounts& a) {
  return {.rounds = std::max(a.rounds, 0),
          .tokens = std::max<std::int64_t>(a.tokens, 0),
          .wall = std::max(a.wall, std::chrono::milliseconds(0)),
          .sandbox = std::max(a.sandbox, std::chrono::milliseconds(0))};
}
}  // namespace

Budget::Budget(const Amounts& limits, Budget* parent) : parent_(parent), limits_(not_negative(limits)) {}

Budget::Reservation::Reservation(Reservation&& other) noexcept : budget_(other.budget_), granted_(other.granted_) {
  other.budget_ = nullptr;
}

Budget::Reservation::~Reservation() {
  if (budget_ != nullptr) budget_->settle(granted_, {});
}

void Budget::Reservation::spend(const Amounts& used) {
  const Amounts part = min(granted_, used);
  budget_->settle(part, used);
  granted_ -= part;
}

Budget::Reservation Budget::reserve(const Amounts& want) {
  Amounts granted;
  {
    const std::scoped_lock lock(mutex_);
    granted = min(not_negative(want), not_negative(limits_ - spent_ - reserved_));
    reserved_ += granted;
  }
  if (parent_ == nullptr) return {this, granted};
  // Locks are never held together: what the parent can't give is handed back here.
  Reservation above = parent_->reserve(granted);
  const Amounts refused = granted - above.granted();
  above.budget_ = nullptr;  // settle() releases the whole chain
  const std::scoped_lock lock(mutex_);
  reserved_ -= refused;
  return {this, granted - refused};
}

void Budget::settle(const Amounts& granted, const Amounts& used) {
  {
    const std::scoped_lock lock(mutex_);
    reserved_ -= granted;
    spent_ += used;
  }
  if (parent_ != nullptr) parent_->settle(granted, used);
}

void Budget::spend(const Amounts& used) { settle({}, used); }

void Budget::extend(const Amounts& more) {
  const std::scoped_lock lock(mutex_);
  limits_ += not_negative(more);
}

Amounts Budget::left() const {
  Amounts here;
  {
    const std::scoped_lock lock(mutex_);
    here = not_negative(limits_ - spent_ - reserved_);
  }
  return parent_ == nullptr ? here : min(here, parent_->left());
}

Amounts Budget::spent() const {
  const std::scoped_lock lock(mutex_);
  return spent_;
}

Amounts Budget::limits() const {
  const std::scoped_lock lock(mutex_);
  return limits_;
}

}  // namespace fixpoint::agent
