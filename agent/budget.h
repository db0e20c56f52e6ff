#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>

namespace fixpoint::agent {

/// What a loop may spend, or has spent. Rounds are repairs: first drafts are free of them. Tokens are those that models
/// write; prompts are counted in Usage but not limited. Wall time is that of models and checks, not of waiting people.
struct Amounts {
  int rounds = 0;
  std::int64_t tokens = 0;
  std::chrono::milliseconds wall{0};
  std::chrono::milliseconds sandbox{0};

  bool operator==(const Amounts&) const = default;
  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
  friend Amounts operator+(Amounts a, const Amounts& b) { return a += b; }
  friend Amounts operator-(Amounts a, const Amounts& b) { return a -= b; }
};

[[nodiscard]] Amounts min(const Amounts& a, const Amounts& b);

/// Repairs of one task never exceed this, whatever is configured or granted.
inline constexpr int kMaxRounds = 10;

/// No limit of any kind (a batch without one).
inline constexpr Amounts kUnlimited{.rounds = std::numeric_limits<int>::max() / 4,
                                    .tokens = std::numeric_limits<std::int64_t>::max() / 4,
                                    .wall = std::chrono::milliseconds(std::int64_t{1} << 52),
                                    .sandbox = std::chrono::milliseconds(std::int64_t{1} << 52)};

enum class Resource : std::uint8_t { rounds, tokens, wall, sandbox };
[[nodiscard]] std::string_view to_string(Resource resource);

/// What is left of a limit. A child spends out of itself and of every budget above it (batch > task > round), so that
/// no amount is ever taken where any of them has run out. Nothing refills it but extend(), which its caller logs.
/// Thread-safe: many tasks share a batch. A child must not outlive its parent.
class Budget {
 public:
  explicit Budget(const Amounts& limits, Budget* parent = nullptr);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// Sets aside up to `want` of each amount, here and above, for a step that has not run yet.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation();  ///< gives back what was not spent
    /// What may still be used of it.
    [[nodiscard]] const Amounts& granted() const { return granted_; }
    /// Books what was used; may be called as often as there is something to book. More than was granted (a limit that the
    /// other side overstepped) is booked in full.
    void spend(const Amounts& used);

   private:
    friend class Budget;
    Reservation(Budget* budget, const Amounts& granted) : budget_(budget), granted_(granted) {}
    Budget* budget_;
    Amounts granted_;
  };
  [[nodiscard]] Reservation reserve(const Amounts& want);

  /// Books what a recorded step used.
  void spend(const Amounts& used);

  /// Raises the limits of this budget alone; an explicit grant.
  void extend(const Amounts& more);

  [[nodiscard]] Amounts left() const;   ///< the least of this budget and those above, never negative
  [[nodiscard]] Amounts spent() const;
  [[nodiscard]] Amounts limits() const;

 private:
  void settle(const Amounts& granted, const Amounts& used);

  Budget* parent_;
  mutable std::mutex mutex_;
  Amounts limits_;
  Amounts spent_;
  Amounts reserved_;
};

}  // namespace fixpoint::agent
