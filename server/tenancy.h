#pragma once

#include <string>
#include <string_view>

#include "server/principal.h"

namespace fixpoint::server {

/// [a-z0-9_]{1,32}
[[nodiscard]] bool is_tenant_name(std::string_view name);

/// A session's id says whose it is: "acme-1f0c…". Those of "local" are plain, as `fixpoint solve` makes them.
[[nodiscard]] std::string new_session_id(const std::string& tenant);
[[nodiscard]] std::string tenant_of_session(std::string_view session);

/// Whether `who` may see the session: its tenant's, or anyone's for an operator.
[[nodiscard]] bool may_see(const Principal& who, std::string_view session);

}  // namespace fixpoint::server
