#pragma once

#include <string>

namespace fixpoint::engine::detail {

/// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; a name that has no counterpart stays as it is.
[[nodiscard]] std::string to_gguf_name(const std::string& hf_name);
/// The inverse.
[[nodiscard]] std::string to_hf_name(const std::string& gguf_name);

}  // namespace fixpoint::engine::detail
