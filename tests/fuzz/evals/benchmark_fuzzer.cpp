// Benchmark and sample files: whatever the bytes are, tasks or an error that names the file.
#include <cstdlib>
#include <string_view>

#include "evals/assemble.h"
#include "evals/samples.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace fixpoint::evals;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto benchmark = parse_benchmark(bytes, "file");
  if (!benchmark) {
    if (!benchmark.error().text().starts_with("file")) std::abort();
    return 0;
  }
  if (benchmark->tasks.empty()) std::abort();
  const auto samples = parse_samples(bytes, "file", *benchmark);
  if (!samples) return 0;
  for (const Sample& sample : *samples) {
    const Task& task = benchmark->tasks.at(sample.task);
    const Program program = assemble(task, sample);
    if (const ProgramTail* tail = std::get_if<ProgramTail>(&task.hidden)) (void)with_tail(program, tail->source);
  }
  return 0;
}
