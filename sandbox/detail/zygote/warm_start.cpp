#include "sandbox/detail/zygote/warm_start.h"

#include <string>

#include "sandbox/detail/drivers/drivers.h"
#include "sandbox/detail/embedded.h"

namespace fixpoint::sandbox::detail {

namespace {

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void add_node_worker(TemplateFrame& root) { root.files = {{"worker.js", text(embedded_node_worker()), false}}; }

void add_python_zygote(const Toolchain& python, TemplateFrame& root) {
  root.files = {{"zygote.so", text(embedded_zygote_library()), false},
                {"zygote.py", text(embedded_zygote_program()), false},
                {"driver.py", std::string(drivers::python_driver()), false}};
  // The same interpreter options as a cold start, up to the program's name.
  root.zygote.assign(python.run.begin(), python.run.end() - 1);
  root.zygote.emplace_back("/.fixpoint/zygote.py");
  root.zygote.push_back(std::to_string(python.run.size() - 1));
  root.environment = python.environment;
}

}  // namespace fixpoint::sandbox::detail
