#pragma once

#include <string_view>

// Texts of the drivers that run inside the jail, put into the program when it is built.
namespace fixpoint::sandbox::detail::drivers {

// A Python module without side effects at import; `main()` serves the judge on descriptors 3 and 4.
std::string_view python_driver();
// The same for Node.
std::string_view javascript_driver();
// A C++17 header: includes nothing of the candidate's; see its first comment.
std::string_view cpp_driver();
// The main of a Rust program (main.rs) beside candidate.rs, which has a `pub fn fixpoint_main()`.
std::string_view rust_driver();
// A Java class Main beside a program with a main, in a package of its own.
std::string_view java_driver();
// A Python module: traces one failing call (sandbox/trace.h).
std::string_view python_tracer();

}  // namespace fixpoint::sandbox::detail::drivers
