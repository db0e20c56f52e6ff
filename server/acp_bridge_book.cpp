#include "server/acp_bridge_book.h"

#include <algorithm>
#include <random>

#include "server/jsonrpc.h"

namespace fixpoint::server {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kOwn = "bridge-";

std::string new_key() {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, "bridge-%08x%08x%08x", static_cast<unsigned>(random()), static_cast<unsigned>(random()), static_cast<unsigned>(random()));
  return text;
}

/// `json[name]` where it is an object; made one where it is not there.
Json& object_in(Json& json, const char* name) {
  Json& it = json[name];
  if (!it.is_object()) it = Json::object();
  return it;
}

std::string text_at(const Json& json, const char* outer, const char* name) {
  const auto it = json.find(outer);
  if (it == json.end() || !it->is_object()) return {};
  const auto found = it->find(name);
  return found == it->end() || !found->is_string() ? std::string() : found->get<std::string>();
}

/// `_meta.fixpoint.<name>` below `outer`.
std::optional<std::int64_t> number_at(const Json& json, const char* outer, const char* name) {
  static const Json::json_pointer kOurs("/_meta/fixpoint");
  const auto it = json.find(outer);
  if (it == json.end() || !it->is_object() || !it->contains(kOurs)) return std::nullopt;
  const Json& ours = it->at(kOurs);
  if (!ours.is_object() || !ours.contains(name) || !ours[name].is_number_integer()) return std::nullopt;
  return ours[name].get<std::int64_t>();
}

}  // namespace

std::string AcpBridgeBook::own_id() { return std::string(kOwn) + std::to_string(++last_own_); }

std::optional<AcpBridgeBook::Line> AcpBridgeBook::from_editor(std::string_view line) {
  Json message = Json::parse(line, nullptr, false);
  if (!message.is_object()) return Line{std::string(line)};  // the server says what is wrong with it
  if (!message.contains("method")) {
    // "c3:fixpoint-7": only the connection that asked gets the answer.
    const std::string id = message.contains("id") && message["id"].is_string() ? message["id"].get<std::string>() : std::string();
    std::erase(asked_, id);
    const std::string mine = "c" + std::to_string(connection_) + ":";
    if (!id.starts_with(mine)) return std::nullopt;
    message["id"] = id.substr(mine.size());
    return Line{jsonrpc::dump(message), true};
  }
  if (!message.contains("id") || !message["method"].is_string()) return Line{std::string(line)};
  const std::string method = message["method"];
  if (method == "session/prompt" && message.contains("params") && message["params"].is_object()) {
    Json& ours = object_in(object_in(message["params"], "_meta"), "fixpoint");
    if (!ours.contains("promptKey")) ours["promptKey"] = new_key();
  }
  const std::string id = jsonrpc::dump(message["id"]);
  if (!pending_.contains(id)) order_.push_back(id);
  std::string text = jsonrpc::dump(message);
  if (method == "session/load") sessions_.erase(text_at(message, "params", "sessionId"));
  pending_[id] = std::move(message);
  return Line{std::move(text), true};
}

std::optional<std::string> AcpBridgeBook::from_server(std::string_view text) {
  Json message = Json::parse(text, nullptr, false);
  if (!message.is_object()) return std::string(text);
  if (message.contains("method")) {
    if (message.contains("id")) {
      const Json& id = message["id"];
      const std::string known = "c" + std::to_string(connection_) + ":" + (id.is_string() ? id.get<std::string>() : jsonrpc::dump(id));
      message["id"] = known;
      asked_.push_back(known);
      return jsonrpc::dump(message);
    }
    if (message["method"] == "$/cancel_request") {
      const std::string known = "c" + std::to_string(connection_) + ":" + text_at(message, "params", "requestId");
      object_in(message, "params")["requestId"] = known;
      std::erase(asked_, known);
      return jsonrpc::dump(message);
    }
    if (message["method"] == "session/update") {
      if (const auto seq = number_at(message, "params", "seq")) sessions_[text_at(message, "params", "sessionId")].last_seq = *seq;
    }
    return std::string(text);
  }
  if (!message.contains("id")) return std::string(text);
  if (message["id"].is_string() && message["id"].get_ref<const std::string&>().starts_with(kOwn)) return std::nullopt;
  const std::string id = jsonrpc::dump(message["id"]);
  if (const auto found = pending_.find(id); found != pending_.end()) {
    answered(found->second, message);
    pending_.erase(found);
    std::erase(order_, id);
  }
  return std::string(text);
}

void AcpBridgeBook::answered(const Json& request, const Json& response) {
  if (!response.contains("result")) return;
  const std::string method = request["method"];
  if (method == "initialize") initialize_ = request;
  if (method == "session/new") {
    sessions_[text_at(response, "result", "sessionId")] = {text_at(request, "params", "cwd"), 0};
  } else if (method == "session/load" || method == "session/resume") {
    Open& open = sessions_[text_at(request, "params", "sessionId")];
    open.cwd = text_at(request, "params", "cwd");
    const auto after = number_at(request, "params", "lastSeq");
    const auto last = after ? after : number_at(response, "result", "lastSeq");
    open.last_seq = std::max(open.last_seq, last.value_or(0));
  } else if (method == "session/close") {
    sessions_.erase(text_at(request, "params", "sessionId"));
  }
}

std::vector<std::string> AcpBridgeBook::disconnected() {
  ++connection_;
  std::vector<std::string> lines;
  for (const std::string& id : asked_) lines.push_back(jsonrpc::notification("$/cancel_request", {{"requestId", id}}));
  asked_.clear();
  return lines;
}

std::vector<std::string> AcpBridgeBook::reconnected() {
  std::vector<std::string> lines;
  if (!initialize_.is_null()) {
    Json hello = initialize_;
    hello["id"] = own_id();
    lines.push_back(jsonrpc::dump(hello));
  }
  for (const auto& [session, open] : sessions_) {
    lines.push_back(jsonrpc::request(own_id(), "session/resume",
                                     {{"sessionId", session},
                                      {"cwd", open.cwd.empty() ? "/" : open.cwd},
                                      {"mcpServers", Json::array()},
                                      {"_meta", {{"fixpoint", {{"lastSeq", open.last_seq}}}}}}));
  }
  for (const std::string& id : order_) {
    Json& request = pending_.at(id);
    if (request["method"] == "session/resume") {  // what came before the cut is not told again
      const auto open = sessions_.find(text_at(request, "params", "sessionId"));
      if (open != sessions_.end()) object_in(object_in(request["params"], "_meta"), "fixpoint")["lastSeq"] = open->second.last_seq;
    }
    lines.push_back(jsonrpc::dump(request));
  }
  return lines;
}

}  // namespace fixpoint::server
