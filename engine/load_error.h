#pragma once

#include <cstdint>
#include <string>

namespace fixpoint::engine {

/// Why a model file could not be used. `where` names the field, the tensor or "offset N".
struct LoadError {
  enum class Kind : std::uint8_t { io, truncated, malformed, unsupported, missing, inconsistent };

  Kind kind = Kind::malformed;
  std::string file;
  std::string where;
  std::string detail;

  /// "model.gguf: tensor 'blk.0.attn_q.weight': ends at 4096, past the end of the file (1024)"
  [[nodiscard]] std::string message() const { return file + ": " + where + ": " + detail; }
};

}  // namespace fixpoint::engine
