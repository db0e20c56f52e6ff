#pragma once

#include "sandbox/detail/frame.h"
#include "sandbox/toolchain.h"

namespace fixpoint::sandbox::detail {

/// Completes a template so that a Python interpreter is kept ready in it: its library, its program, the driver of function
/// checks, and the command.
void add_python_zygote(const Toolchain& python, TemplateFrame& root);

/// Completes a template with the program of Node processes that are started ahead.
void add_node_worker(TemplateFrame& root);

}  // namespace fixpoint::sandbox::detail
