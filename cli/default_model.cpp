#include "cli/default_model.h"

#include <cstdio>

#include "cli/eval_data.h"

namespace fixpoint::cli {

bool name_default_model(WorkerOptions& options) {
  if (!options.model.empty() || !options.script.empty()) return true;
  const std::filesystem::path file = own_data_folder() / "fixpoint-small.gguf";
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code)) return false;
  options.model = file.string();
  if (options.kv_memory.empty()) options.kv_memory = "256M";
  std::fprintf(stderr,
               "fixpoint: no model named, so the small one that is part of Fixpoint answers. It writes short Python functions over\n"
               "          lists, numbers, strings and words, and little else. Another: -m FILE.gguf or -m http://HOST:PORT/v1\n");
  return true;
}

}  // namespace fixpoint::cli
