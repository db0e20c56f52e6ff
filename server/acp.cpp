#include "server/acp.h"

#include <algorithm>

namespace fixpoint::server::acp {
namespace {

constexpr std::size_t kMaxName = 4'096;    // paths, ids
constexpr std::size_t kMaxBlocks = 256;

/// Reads fields of one object; the first that is wrong is remembered, with its path.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {
    if (!json.is_object()) fail({}, "not an object");
  }

  const Json* find(const char* name) const {
    if (!json_->is_object()) return nullptr;
    const auto it = json_->find(name);
    return it == json_->end() || it->is_null() ? nullptr : &*it;
  }
  std::string text(const char* name, std::size_t limit = kMaxName) {
    const Json* it = find(name);
    if (it == nullptr) {
      fail(name, "missing");
      return {};
    }
    return text_of(*it, name, limit);
  }
  std::string text_or(const char* name, std::string otherwise = {}, std::size_t limit = kMaxName) {
    const Json* it = find(name);
    return it == nullptr ? std::move(otherwise) : text_of(*it, name, limit);
  }
  std::optional<std::int64_t> integer(const char* name, std::int64_t least, std::int64_t most) {
    const Json* it = find(name);
    if (it == nullptr) return std::nullopt;
    if (!it->is_number_integer() || (it->is_number_unsigned() && it->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) ||
        it->get<std::int64_t>() < least || it->get<std::int64_t>() > most) {
      fail(name, "not an integer within " + std::to_string(least) + ".." + std::to_string(most));
      return std::nullopt;
    }
    return it->get<std::int64_t>();
  }
  bool truth(const char* name) {
    const Json* it = find(name);
    if (it == nullptr) return false;
    if (!it->is_boolean()) {
      fail(name, "not true or false");
      return false;
    }
    return it->get<bool>();
  }
  void array(const char* name) {
    const Json* it = find(name);
    if (it == nullptr) {
      fail(name, "missing");
    } else if (!it->is_array()) {
      fail(name, "not an array");
    }
  }
  void fail(const std::string& name, const std::string& what) {
    if (!error_.empty()) return;
    const std::string dot = path_.empty() || name.empty() ? "" : ".";
    error_ = path_ + dot + name + ": " + what;
  }
  void take(const Reader& inner) {
    if (error_.empty()) error_ = inner.error_;
  }
  std::string path(const char* name) const { return path_.empty() ? name : path_ + "." + name; }
  [[nodiscard]] const std::string& error() const { return error_; }

  template <class T>
  Parsed<T> done(T value) const {
    if (!error_.empty()) return tl::unexpected(error_);
    return value;
  }

 private:
  std::string text_of(const Json& json, const char* name, std::size_t limit) {
    if (!json.is_string()) {
      fail(name, "not a string");
      return {};
    }
    const auto& text = json.get_ref<const std::string&>();
    if (text.size() > limit) {
      fail(name, "longer than " + std::to_string(limit) + " bytes");
      return {};
    }
    return text;
  }

  const Json* json_;
  std::string path_;
  std::string error_;
};

/// `_meta.fixpoint`, or an empty object. Another type is ignored, as the protocol asks of everything in `_meta`.
const Json& extras(const Json& params) {
  static const Json kNone = Json::object();
  if (!params.is_object()) return kNone;
  const auto meta = params.find("_meta");
  if (meta == params.end() || !meta->is_object()) return kNone;
  const auto ours = meta->find("fixpoint");
  return ours == meta->end() || !ours->is_object() ? kNone : *ours;
}

std::string session_id(Reader& reader) { return reader.text("sessionId", 128); }

std::string absolute(Reader& reader, const char* name, std::string path) {
  if (reader.error().empty() && !path.starts_with('/') && !(path.size() > 2 && path[1] == ':')) {
    reader.fail(name, "not an absolute path");
  }
  return path;
}

Block read_block(const Json& json, const std::string& path, Reader& outer) {
  Reader reader(json, path);
  const std::string type = reader.text("type");
  Block block;
  if (type == "text") {
    block = TextBlock{reader.text("text", std::string::npos)};
  } else if (type == "resource_link") {
    block = LinkBlock{reader.text("uri"), reader.text("name")};
  } else if (type == "resource") {
    const Json* resource = reader.find("resource");
    static const Json kMissing;
    Reader inner(resource == nullptr ? kMissing : *resource, reader.path("resource"));
    if (resource != nullptr && inner.find("text") == nullptr && inner.find("blob") != nullptr) {
      inner.fail("blob", "only text is accepted");
    }
    block = ResourceBlock{inner.text("uri"), inner.text("text", std::string::npos)};
    reader.take(inner);
  } else if (type == "image" || type == "audio") {
    reader.fail("type", type + " is not among the prompt capabilities");
  } else {
    reader.fail("type", "not text, resource or resource_link");
  }
  outer.take(reader);
  return block;
}

}  // namespace

Parsed<Initialize> parse_initialize(const Json& params) {
  Reader reader(params, "");
  Initialize it;
  if (reader.find("protocolVersion") == nullptr) reader.fail("protocolVersion", "missing");
  it.protocol_version = reader.integer("protocolVersion", 0, 65'535).value_or(0);
  if (const Json* capabilities = reader.find("clientCapabilities")) {
    Reader inner(*capabilities, "clientCapabilities");
    if (const Json* fs = inner.find("fs")) {
      Reader files(*fs, "clientCapabilities.fs");
      it.client.reads_files = files.truth("readTextFile");
      it.client.writes_files = files.truth("writeTextFile");
      inner.take(files);
    }
    reader.take(inner);
  }
  if (const Json* info = reader.find("clientInfo")) {
    Reader inner(*info, "clientInfo");
    it.client.name = inner.text_or("name");
    it.client.version = inner.text_or("version");
    reader.take(inner);
  }
  return reader.done(std::move(it));
}

Parsed<Authenticate> parse_authenticate(const Json& params) {
  Reader reader(params, "");
  return reader.done(Authenticate{reader.text("methodId")});
}

Parsed<NewSession> parse_new_session(const Json& params) {
  Reader reader(params, "");
  NewSession it{absolute(reader, "cwd", reader.text("cwd"))};
  reader.array("mcpServers");
  return reader.done(std::move(it));
}

Parsed<OpenSession> parse_open_session(const Json& params) {
  Reader reader(params, "");
  OpenSession it{.session = session_id(reader), .cwd = absolute(reader, "cwd", reader.text("cwd"))};
  Reader ours(extras(params), "_meta.fixpoint");
  it.last_seq = ours.integer("lastSeq", 0, std::int64_t{1} << 53);
  reader.take(ours);
  return reader.done(std::move(it));
}

Parsed<ListSessions> parse_list_sessions(const Json& params) {
  if (params.is_null()) return ListSessions{};
  Reader reader(params, "");
  ListSessions it;
  if (reader.find("cwd") != nullptr) it.cwd = reader.text("cwd");
  it.cursor = reader.text_or("cursor", {}, 128);
  return reader.done(std::move(it));
}

Parsed<SessionOnly> parse_session_only(const Json& params) {
  Reader reader(params, "");
  return reader.done(SessionOnly{session_id(reader)});
}

Parsed<SetMode> parse_set_mode(const Json& params) {
  Reader reader(params, "");
  SetMode it{session_id(reader), reader.text("modeId", 128)};
  return reader.done(std::move(it));
}

Parsed<SetConfig> parse_set_config(const Json& params) {
  Reader reader(params, "");
  SetConfig it{session_id(reader), reader.text("configId", 128), {}};
  if (const Json* value = reader.find("value"); value != nullptr && value->is_boolean()) {
    it.value = value->get<bool>() ? "true" : "false";
  } else {
    it.value = reader.text("value", 128);
  }
  return reader.done(std::move(it));
}

Parsed<Prompt> parse_prompt(const Json& params) {
  Reader reader(params, "");
  Prompt it{.session = session_id(reader)};
  reader.array("prompt");
  if (const Json* blocks = reader.find("prompt"); blocks != nullptr && blocks->is_array()) {
    if (blocks->empty()) reader.fail("prompt", "empty");
    if (blocks->size() > kMaxBlocks) reader.fail("prompt", "more than " + std::to_string(kMaxBlocks) + " blocks");
    for (std::size_t i = 0; i < blocks->size() && reader.error().empty(); ++i) {
      it.blocks.push_back(read_block((*blocks)[i], "prompt[" + std::to_string(i) + "]", reader));
    }
  }
  const Json& more = extras(params);
  Reader ours(more, "_meta.fixpoint");
  it.key = ours.text_or("promptKey", {}, 128);
  it.language = ours.text_or("language", {}, 64);
  it.function = ours.text_or("function", {}, 256);
  it.file = ours.text_or("file");
  if (!it.file.empty()) it.file = absolute(ours, "file", std::move(it.file));
  if (const Json* budget = ours.find("budget")) {
    using std::chrono::milliseconds;
    constexpr std::int64_t kDay = 86'400'000;
    Reader inner(*budget, "_meta.fixpoint.budget");
    if (const auto rounds = inner.integer("rounds", 0, agent::kMaxRounds)) it.budget.rounds = static_cast<int>(*rounds);
    it.budget.tokens = inner.integer("tokens", 1, std::int64_t{1} << 40);
    if (const auto wall = inner.integer("wallMs", 1, kDay)) it.budget.wall = milliseconds(*wall);
    if (const auto sandbox = inner.integer("sandboxMs", 1, kDay)) it.budget.sandbox = milliseconds(*sandbox);
    ours.take(inner);
  }
  reader.take(ours);
  if (params.is_object() && params.contains("_meta") && params["_meta"].is_object()) {
    const Json& meta = params["_meta"];
    if (const auto trace = meta.find("traceparent"); trace != meta.end() && trace->is_string() && trace->get_ref<const std::string&>().size() < 128) {
      it.traceparent = trace->get<std::string>();
    }
  }
  return reader.done(std::move(it));
}

Parsed<CancelRequest> parse_cancel_request(const Json& params) {
  if (!params.is_object() || !params.contains("requestId")) return tl::unexpected(std::string("requestId: missing"));
  const Json& id = params["requestId"];
  if (id.is_string()) return CancelRequest{id.get<std::string>()};
  if (id.is_number_integer()) return CancelRequest{id.get<std::int64_t>()};
  return tl::unexpected(std::string("requestId: not an integer or a string"));
}

Parsed<std::optional<std::string>> parse_permission(const Json& result) {
  Reader reader(result, "");
  const Json* outcome = reader.find("outcome");
  if (outcome == nullptr) return tl::unexpected(std::string("outcome: missing"));
  Reader inner(*outcome, "outcome");
  const std::string kind = inner.text("outcome");
  std::optional<std::string> option;
  if (kind == "selected") {
    option = inner.text("optionId");
  } else if (kind != "cancelled") {
    inner.fail("outcome", "not selected or cancelled");
  }
  return inner.done(std::move(option));
}

Parsed<std::string> parse_file_content(const Json& result) {
  Reader reader(result, "");
  return reader.done(reader.text("content", std::string::npos));
}

std::optional<std::string> path_of_uri(std::string_view uri) {
  if (!uri.starts_with("file://")) return std::nullopt;
  uri.remove_prefix(7);
  if (uri.starts_with("localhost/")) uri.remove_prefix(9);
  uri = uri.substr(0, uri.find_first_of("?#"));
  if (!uri.starts_with('/')) return std::nullopt;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; };
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] == '%' && i + 2 < uri.size() && digit(uri[i + 1]) >= 0 && digit(uri[i + 2]) >= 0) {
      path += static_cast<char>(digit(uri[i + 1]) * 16 + digit(uri[i + 2]));
      i += 2;
    } else {
      path += uri[i];
    }
  }
  if (path.find('\0') != std::string::npos) return std::nullopt;
  return path;
}

}  // namespace fixpoint::server::acp
