#include "agent/event.h"

namespace fixpoint::agent {

std::string_view kind_of(const Event& event) {
  static constexpr std::string_view kKinds[] = {
      "session_started", "round_started", "generation_started", "text_delta", "generated",     "generation_failed", "explained",
      "program_written", "tests_written", "check_started",      "checked",    "check_failed",  "stuck",             "climbed",
      "scored",          "ended",         "resumed",            "hint_given", "program_submitted", "declined"};
  static_assert(std::size(kKinds) == std::variant_size_v<Event>);
  return kKinds[event.index()];
}

Amounts cost_of(const Event& event) {
  return std::visit(
      [](const auto& it) -> Amounts {
        if constexpr (requires { it.cost; }) {
          return it.cost;
        } else {
          return {};
        }
      },
      event);
}

}  // namespace fixpoint::agent
