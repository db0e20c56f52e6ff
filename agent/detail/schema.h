#pragma once

#include "agent/detail/sqlite.h"

namespace fixpoint::agent::detail {

/// The schema that this program writes (PRAGMA user_version). docs/agent.md describes it.
inline constexpr int kSchemaVersion = 2;

/// Brings a journal of any earlier version, or an empty file, to kSchemaVersion, in one transaction. Throws SqliteFailure;
/// returns false, and changes nothing, where the file is from a later program.
[[nodiscard]] bool migrate(Database& db);

}  // namespace fixpoint::agent::detail
