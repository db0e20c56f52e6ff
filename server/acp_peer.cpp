#include "server/acp_peer.h"

#include "server/acp_replies.h"

namespace fixpoint::server {
namespace {

using jsonrpc::Code;
using jsonrpc::Error;
using jsonrpc::Json;

tl::unexpected<Error> refuse(int code, std::string message) { return tl::unexpected(Error{code, std::move(message)}); }
tl::unexpected<Error> bad_params(std::string message) { return refuse(Code::kInvalidParams, std::move(message)); }

Error from(const HubError& error) {
  switch (error.kind) {
    case HubError::Kind::unknown: return {Code::kNotFound, error.detail};
    case HubError::Kind::invalid: return {Code::kInvalidParams, error.detail};
    case HubError::Kind::busy: {
      Error busy{Code::kBusy, error.detail};
      if (error.retry_after_seconds > 0) busy.data = {{"retryAfterSeconds", error.retry_after_seconds}};
      return busy;
    }
    case HubError::Kind::internal: break;
  }
  return {Code::kInternalError, error.detail};
}

}  // namespace

AcpPeer::AcpPeer(SessionHub& hub, Principal who, std::shared_ptr<Outbox> outbox, Options options)
    : hub_(hub), who_(std::move(who)), outbox_(std::move(outbox)), options_(std::move(options)) {}

AcpPeer::~AcpPeer() {
  watches_.clear();
  outbox_->close();
}

void AcpPeer::receive(std::string_view text) {
  auto message = jsonrpc::parse(text, options_.limits);
  if (!message) {
    if (message.error().answer) send(jsonrpc::error(message.error().id, message.error().error));
    return;
  }
  if (auto* request = std::get_if<jsonrpc::Request>(&*message)) {
    handle(std::move(*request));
  } else {
    handle(std::get<jsonrpc::Response>(std::move(*message)));
  }
}

void AcpPeer::refuse_binary() { send(jsonrpc::error({}, {Code::kInvalidRequest, "binary frames are not accepted: messages are text"})); }

void AcpPeer::handle(jsonrpc::Request request) {
  if (!request.id) return notified(request.method, request.params);
  const Id id = *request.id;
  if (!client_ && request.method != "initialize") {
    return send(jsonrpc::error(id, {Code::kInvalidRequest, "initialize comes first"}));
  }
  if (request.method.starts_with("session/") && !who_.use) {
    return send(jsonrpc::error(id, {Code::kAuthRequired, "this token may not use sessions"}));
  }
  if (request.method == "session/prompt") return prompt(id, request.params);
  if (request.method == "session/resume") return resume_session(id, request.params);
  const Reply reply = call(request.method, request.params);
  send(reply ? jsonrpc::result(id, *reply) : jsonrpc::error(id, reply.error()));
}

AcpPeer::Reply AcpPeer::call(const std::string& method, const Json& params) {
  if (method == "initialize") return initialize(params);
  if (method == "authenticate") {
    const auto parsed = acp::parse_authenticate(params);
    return bad_params(parsed ? "methodId: none is offered; a token comes with the connection" : parsed.error());
  }
  if (method == "session/new") return new_session(params);
  if (method == "session/load") return load_session(params);
  if (method == "session/list") return list_sessions(params);
  if (method == "session/close") return close_session(params);
  if (method == "session/set_mode") return set_mode(params);
  if (method == "session/set_config_option") return set_config(params);
  return refuse(Code::kMethodNotFound, "no method " + method.substr(0, 64));
}

AcpPeer::Reply AcpPeer::initialize(const Json& params) {
  if (client_) return refuse(Code::kInvalidRequest, "initialized already");
  auto parsed = acp::parse_initialize(params);
  if (!parsed) return bad_params(parsed.error());
  client_ = std::move(parsed->client);
  return acp::initialize_result(options_.version, options_.limits);
}

std::optional<Error> AcpPeer::watch(const std::string& session, std::int64_t after) {
  auto watch = hub_.watch(who_, session, after, outbox_);
  if (!watch) return from(watch.error());
  if (*watch) watches_[session] = *std::move(watch);
  return std::nullopt;
}

AcpPeer::Reply AcpPeer::new_session(const Json& params) {
  const auto parsed = acp::parse_new_session(params);
  if (!parsed) return bad_params(parsed.error());
  const auto record = hub_.create(who_, parsed->cwd);
  if (!record) return tl::unexpected(from(record.error()));
  if (auto error = watch(record->id, 0)) return tl::unexpected(*std::move(error));
  modes_[record->id] = record->mode;
  cwds_[record->id] = record->cwd;
  return acp::session_result(*record, 0, false, true);
}

AcpPeer::Reply AcpPeer::load_session(const Json& params) {
  const auto parsed = acp::parse_open_session(params);
  if (!parsed) return bad_params(parsed.error());
  const auto opened = hub_.open(who_, parsed->session);
  if (!opened) return tl::unexpected(from(opened.error()));
  if (auto error = watch(parsed->session, 0)) return tl::unexpected(*std::move(error));
  modes_[parsed->session] = opened->record.mode;
  cwds_[parsed->session] = opened->record.cwd;
  return acp::session_result(opened->record, opened->last_seq, opened->at_work, false);
}

/// The answer comes first, then what the client lacks.
void AcpPeer::resume_session(const Id& id, const Json& params) {
  const auto parsed = acp::parse_open_session(params);
  if (!parsed) return send(jsonrpc::error(id, {Code::kInvalidParams, parsed.error()}));
  const auto opened = hub_.open(who_, parsed->session);
  if (!opened) return send(jsonrpc::error(id, from(opened.error())));
  const std::int64_t after = parsed->last_seq.value_or(opened->last_seq);
  if (after > opened->last_seq) {
    return send(jsonrpc::error(id, {Code::kInvalidParams, "_meta.fixpoint.lastSeq: " + std::to_string(after) + " is beyond the last update, " +
                                                              std::to_string(opened->last_seq)}));
  }
  send(jsonrpc::result(id, acp::session_result(opened->record, opened->last_seq, opened->at_work, false)));
  (void)watch(parsed->session, after);
  modes_[parsed->session] = opened->record.mode;
  cwds_[parsed->session] = opened->record.cwd;
}

AcpPeer::Reply AcpPeer::list_sessions(const Json& params) {
  const auto parsed = acp::parse_list_sessions(params);
  if (!parsed) return bad_params(parsed.error());
  auto records = hub_.list(who_, parsed->cwd.value_or(""), options_.page + 1, parsed->cursor);
  if (!records) return tl::unexpected(from(records.error()));
  const bool more = records->size() > static_cast<std::size_t>(options_.page);
  if (more) records->resize(static_cast<std::size_t>(options_.page));
  return acp::list_result(*records, more);
}

AcpPeer::Reply AcpPeer::close_session(const Json& params) {
  const auto parsed = acp::parse_session_only(params);
  if (!parsed) return bad_params(parsed.error());
  if (const auto opened = hub_.open(who_, parsed->session); !opened) return tl::unexpected(from(opened.error()));
  cancel(parsed->session);
  // A prompt that another connection asked for is stopped too: whoever closes a session ends its work.
  if (const auto stopped = hub_.cancel(who_, parsed->session); !stopped) return tl::unexpected(from(stopped.error()));
  if (!prompts_.contains(parsed->session)) watches_.erase(parsed->session);
  return Json::object();
}

AcpPeer::Reply AcpPeer::set_mode(const Json& params) {
  const auto parsed = acp::parse_set_mode(params);
  if (!parsed) return bad_params(parsed.error());
  const auto record = hub_.set_mode(who_, parsed->session, parsed->mode);
  if (!record) return tl::unexpected(from(record.error()));
  modes_[record->id] = record->mode;
  hub_.announce(record->id, jsonrpc::dump({{"sessionUpdate", "current_mode_update"}, {"currentModeId", record->mode}}), outbox_.get());
  return Json::object();
}

AcpPeer::Reply AcpPeer::set_config(const Json& params) {
  const auto parsed = acp::parse_set_config(params);
  if (!parsed) return bad_params(parsed.error());
  const auto record = hub_.set_option(who_, parsed->session, parsed->option, parsed->value);
  if (!record) return tl::unexpected(from(record.error()));
  Json options = acp::config_options(*record);
  hub_.announce(record->id, jsonrpc::dump({{"sessionUpdate", "config_option_update"}, {"configOptions", options}}), outbox_.get());
  return Json{{"configOptions", std::move(options)}};
}

void AcpPeer::notified(const std::string& method, const Json& params) {
  if (!client_) return;
  if (method == "session/cancel") {
    if (const auto parsed = acp::parse_session_only(params)) cancel(parsed->session);
  } else if (method == "$/cancel_request") {
    if (const auto parsed = acp::parse_cancel_request(params)) cancel_request(parsed->id);
  }
  // Others are ignored, as JSON-RPC wants of notifications that nobody knows.
}

void AcpPeer::cancel_request(const Id& id) {
  for (const auto& [session, pending] : prompts_) {
    if (pending.id == id) return cancel(std::string(session));
  }
}

void AcpPeer::handle(jsonrpc::Response response) {
  const auto* id = std::get_if<std::string>(&response.id);
  const auto asked = id == nullptr ? asked_.end() : asked_.find(*id);
  if (asked == asked_.end()) return;  // late, or never asked
  const OnAnswer on_answer = std::move(asked->second);
  asked_.erase(asked);
  on_answer(response.result);
}

std::optional<std::string> AcpPeer::render(Outbox::Entry entry) {
  if (auto* message = std::get_if<Outbox::Message>(&entry)) return std::move(message->json);
  if (auto* end = std::get_if<TurnEnd>(&entry)) {
    turn_ended(std::move(*end));
    return std::nullopt;
  }
  const auto& numbered = std::get<Outbox::Numbered>(entry);
  return render_update(numbered.session, *numbered.update, numbered.from);
}

}  // namespace fixpoint::server
