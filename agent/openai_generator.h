#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "agent/generator.h"

namespace fixpoint::agent {

struct OpenAiOptions {
  std::string base_url;  ///< "http://host:8000/v1"; "#NAME" at its end names the model
  std::string model;     ///< empty: the first that the server lists
  std::string key;       ///< bearer token; never appears in an error or a record
  std::string ca_file;   ///< extra authority for https; empty: the system's
  int retries = 3;       ///< after the first try, and only before any text has arrived
  std::chrono::milliseconds first_backoff{500};  ///< doubled each time; a server's Retry-After comes first
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{120'000};  ///< between two pieces of an answer
};

/// Writes with any OpenAI-compatible server (chat completions, streamed). Error: the address can't be used.
[[nodiscard]] tl::expected<std::unique_ptr<Generator>, std::string> make_openai_generator(OpenAiOptions options);

}  // namespace fixpoint::agent
