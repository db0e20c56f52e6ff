#pragma once

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Adds eos, eot and every control or user-defined token that is known by its name to end a turn ("<|im_end|>", "<|endoftext|>", …):
/// files often name only one of several. Keeps what is there; no id twice.
void add_stop_tokens(TokenizerSpec& spec);

}  // namespace fixpoint::engine::detail
