#include "server/tenancy.h"

#include <algorithm>

#include "agent/loop.h"

namespace fixpoint::server {

bool is_tenant_name(std::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string new_session_id(const std::string& tenant) {
  const std::string id = agent::new_session_id();
  return tenant == "local" ? id : tenant + "-" + id;
}

std::string tenant_of_session(std::string_view session) {
  const std::size_t dash = session.find('-');
  return dash == std::string_view::npos ? "local" : std::string(session.substr(0, dash));
}

bool may_see(const Principal& who, std::string_view session) { return who.operate || tenant_of_session(session) == who.tenant; }

}  // namespace fixpoint::server
