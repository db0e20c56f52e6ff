#include "engine/detail/config_limits.h"

#include <cmath>
#include <utility>

namespace fixpoint::engine::detail {

std::optional<LoadError> check_config(const ModelConfig& c, const std::string& file) {
  const auto wrong = [&](std::string where, std::string detail) {
    return LoadError{LoadError::Kind::inconsistent, file, std::move(where), std::move(detail)};
  };
  if (c.num_heads % c.num_kv_heads != 0) {
    return wrong("attention heads", std::to_string(c.num_heads) + " heads cannot share " + std::to_string(c.num_kv_heads) +
                                        " key/value heads evenly");
  }
  if (c.rotary_dim % 2 != 0 || c.rotary_dim > c.head_dim) {
    return wrong("rotary dimension", std::to_string(c.rotary_dim) + " must be even and at most the head's " +
                                         std::to_string(c.head_dim));
  }
  if (!(c.rms_eps >= 0) || c.rms_eps > 1) return wrong("RMS norm epsilon", "must be between 0 and 1");
  if (!(c.rope_theta > 1) || !std::isfinite(c.rope_theta)) return wrong("rope theta", "must be above 1");
  const auto& s = c.rope_scaling;
  if (!(s.factor > 0) || !std::isfinite(s.factor)) return wrong("rope scaling factor", "must be above 0");
  const bool needs_original = s.kind == RopeScaling::Kind::llama3 || s.kind == RopeScaling::Kind::yarn;
  if (needs_original && s.original_context <= 0) return wrong("rope scaling", "the original context length is missing");
  if (s.kind == RopeScaling::Kind::llama3 && !(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor)) {
    return wrong("rope scaling", "the low frequency factor must be above 0 and below the high one");
  }
  if (s.kind == RopeScaling::Kind::yarn && !(s.beta_fast > 0 && s.beta_slow > 0 && std::isfinite(s.attn_factor))) {
    return wrong("rope scaling", "beta_fast and beta_slow must be above 0");
  }
  return std::nullopt;
}

}  // namespace fixpoint::engine::detail
