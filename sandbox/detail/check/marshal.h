#pragma once

#include "sandbox/value.h"

namespace fixpoint::sandbox::detail {

// Values in CPython's own form (its module `marshal`, version 2), which an interpreter reads and writes without running any
// Python for it.

// Appends a value. False where it has a part that this form has not, or does not keep as it was: undefined, Decimal, named types,
// objects, integers beyond 64 bits, and sets (their members' order). `out` is then no value.
[[nodiscard]] bool marshal_to(const Value& value, std::string& out);
// What comes before the `count` values of a tuple.
void marshal_tuple_to(std::size_t count, std::string& out);

// The value that a hostile interpreter wrote; the whole text must be one. Only what drivers send in this form is read: sets, code,
// interned and shared objects are errors. Depth and number of values are bounded as in `decode`.
[[nodiscard]] tl::expected<Value, ValueError> unmarshal(std::string_view bytes);

}  // namespace fixpoint::sandbox::detail
