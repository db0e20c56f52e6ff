#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/jsonrpc.h"
#include "server/session_store.h"
#include "server/update.h"

// What the service says, as JSON that fits the protocol's schema.
namespace fixpoint::server::acp {

using jsonrpc::Json;

[[nodiscard]] Json initialize_result(std::string_view version, const jsonrpc::Limits& limits);
/// Of session/new, load and resume; `session_id` only for new.
[[nodiscard]] Json session_result(const SessionRecord& record, std::int64_t last_seq, bool at_work, bool with_id);
[[nodiscard]] Json list_result(const std::vector<SessionRecord>& records, bool more);
[[nodiscard]] Json modes(const SessionRecord& record);
[[nodiscard]] Json config_options(const SessionRecord& record);

/// "end_turn", "max_tokens", "max_turn_requests", "cancelled".
[[nodiscard]] std::string_view stop_reason(const agent::Ended& end);
/// Of session/prompt. `written`: the edited file was written.
[[nodiscard]] Json prompt_result(const TurnEnd& end, bool cancelled, bool written);
/// `_meta.fixpoint` of a prompt's end.
[[nodiscard]] Json outcome(const TurnEnd& end);

/// Parameters of session/request_permission.
[[nodiscard]] Json ask_for_decision(const TurnEnd& end, int more_rounds, bool specialist);
[[nodiscard]] Json ask_to_write(const TurnEnd& end, const std::string& before);

}  // namespace fixpoint::server::acp
