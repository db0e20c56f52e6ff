#pragma once

#include <type_traits>
#include <utility>

namespace fixpoint::kernels::cpu {

/// body(std::integral_constant<int, 0>), …, body(std::integral_constant<int, N - 1>), written out by the compiler.
template <int N, class Body>
[[gnu::always_inline]] inline void unroll(Body&& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

}  // namespace fixpoint::kernels::cpu
