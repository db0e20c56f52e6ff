#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/generator.h"

namespace fixpoint::agent {

/// One answer of a script.
struct ScriptedAnswer {
  std::string text;
  Finish finish = Finish::stop;
  std::optional<GenerateError::Kind> error;  ///< fail with it after `text`
  std::int64_t tokens = 0;  ///< what it counts as; 0: a token for each four bytes, at least one
  std::chrono::milliseconds delay{0};        ///< before the text, cut short by a stop request
};

/// Gives the answers in order, whoever asks; obeys max_tokens and max_bytes by cutting. For tests and demonstrations.
[[nodiscard]] std::unique_ptr<Generator> make_scripted_generator(std::vector<ScriptedAnswer> answers, std::size_t skip = 0);

/// A script file: a JSON list of strings and objects {"text", "finish", "error", "tokens", "delay_ms"}.
[[nodiscard]] tl::expected<std::vector<ScriptedAnswer>, std::string> parse_script(std::string_view json);

}  // namespace fixpoint::agent
