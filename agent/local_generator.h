#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "agent/generator.h"

namespace fixpoint::engine {
class Engine;
}

namespace fixpoint::agent {

struct LocalGeneratorOptions {
  std::string name = "local";
  engine::ChatFormat format = engine::ChatFormat::chatml;
  std::string tenant;
  int priority = 0;
  bool starts_programs = false;  ///< GenerateRequest::program_start is put in, for models that were trained to be given it
  std::chrono::milliseconds pin{120'000};  ///< how long a session's prefix is kept while the sandbox runs; no longer than the session
};

/// Writes with our own engine, which must outlive the generator. Remembers the tokens of each session's last prompts and
/// answers, so that the next prompt begins with exactly these tokens and all of them come from the prefix cache.
[[nodiscard]] std::unique_ptr<Generator> make_local_generator(engine::Engine& engine, LocalGeneratorOptions options);

}  // namespace fixpoint::agent
