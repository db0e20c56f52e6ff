#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/acp_peer.h"
#include "server/acp_replies.h"

// A prompt's way through a connection: files are read, the turn runs, a person decides, the file is written, the answer.
namespace fixpoint::server {
namespace {

using jsonrpc::Code;
using jsonrpc::Error;
using jsonrpc::Json;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr int kMoreRounds = SessionHub::Options{}.more.rounds;

/// A regular file of this machine, whole.
tl::expected<std::string, std::string> read_local(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return tl::unexpected(path + ": not a file");
  if (std::filesystem::file_size(path, error) > kMaxFileBytes || error) return tl::unexpected(path + ": longer than 1 MiB");
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in.good() && !in.eof()) return tl::unexpected(path + ": can't be read");
  return text;
}

}  // namespace

AcpPeer::Pending* AcpPeer::find(const std::string& session, std::uint64_t number) {
  const auto found = prompts_.find(session);
  return found == prompts_.end() || found->second.number != number ? nullptr : &found->second;
}

void AcpPeer::ask(Pending& pending, const char* method, const Json& params, std::function<void(Pending&, const Reply&)> on_answer) {
  const std::string id = "fixpoint-" + std::to_string(++last_number_);
  pending.requests.push_back(id);
  asked_[id] = [this, id, session = pending.prompt.session, number = pending.number, on_answer = std::move(on_answer)](const Reply& reply) {
    Pending* open = find(session, number);
    if (open == nullptr) return;
    std::erase(open->requests, id);
    on_answer(*open, reply);
  };
  send(jsonrpc::request(Id(id), method, params));
}

void AcpPeer::abandon_requests(Pending& pending) {
  for (const std::string& id : pending.requests) {
    asked_.erase(id);
    send(jsonrpc::notification("$/cancel_request", {{"requestId", id}}));
  }
  pending.requests.clear();
}

void AcpPeer::prompt(const Id& id, const Json& params) {
  auto parsed = acp::parse_prompt(params);
  if (!parsed) return send(jsonrpc::error(id, {Code::kInvalidParams, parsed.error()}));
  const std::string session = parsed->session;
  if (!watches_.contains(session)) {
    return send(jsonrpc::error(id, {Code::kNotFound, "sessionId: not open here; session/new, load or resume comes first"}));
  }
  if (prompts_.contains(session)) return send(jsonrpc::error(id, {Code::kBusy, "a prompt of this session is at work"}));
  Pending& pending = prompts_[session];
  pending.number = ++last_number_;
  pending.id = id;
  pending.prompt = *std::move(parsed);
  pending.cwd = cwds_[session];
  read_files(pending);
}

void AcpPeer::read_files(Pending& pending) {
  PromptText& text = pending.text;
  text.language = pending.prompt.language;
  text.function = pending.prompt.function;
  text.file = pending.prompt.file;
  ++pending.reads;  // until every read was begun
  const std::string session = pending.prompt.session;
  const std::vector<acp::Block> blocks = std::move(pending.prompt.blocks);
  for (const acp::Block& block : blocks) {
    if (const auto* said = std::get_if<acp::TextBlock>(&block)) {
      text.message += (text.message.empty() ? "" : "\n") + said->text;
    } else if (const auto* resource = std::get_if<acp::ResourceBlock>(&block)) {
      text.files.push_back({acp::path_of_uri(resource->uri).value_or(resource->uri), resource->text});
    } else {
      const auto& link = std::get<acp::LinkBlock>(block);
      if (auto path = acp::path_of_uri(link.uri)) {
        read_file(pending, *std::move(path), true);
      } else {
        pending.read_error = link.uri + ": only file: links can be read";
      }
    }
  }
  --pending.reads;
  files_read(session);
}

/// `must`: it was linked; else it may be missing.
void AcpPeer::read_file(Pending& pending, std::string path, bool must) {
  if (client_->reads_files) {
    ++pending.reads;
    const Json params{{"sessionId", pending.prompt.session}, {"path", path}};
    ask(pending, "fs/read_text_file", params, [this, path, must](Pending& open, const Reply& reply) {
      --open.reads;
      const auto content = reply ? acp::parse_file_content(*reply) : tl::unexpected(reply.error().message);
      if (content) {
        open.text.files.push_back({path, *content});
      } else if (must) {
        open.read_error = path + ": " + content.error();
      }
      files_read(open.prompt.session);
    });
    return;
  }
  const auto content = options_.local_files ? read_local(path) : tl::unexpected(path + ": the client offers no fs/read_text_file; embed the file");
  if (content) {
    pending.text.files.push_back({std::move(path), *content});
  } else if (must) {
    pending.read_error = content.error();
  }
}

void AcpPeer::files_read(const std::string& session) {
  const auto found = prompts_.find(session);
  if (found == prompts_.end() || found->second.reads > 0) return;
  Pending& pending = found->second;
  if (!std::exchange(pending.looked_for_tests, true)) {
    std::string edited = pending.text.file;
    bool tests = false;
    for (const PromptFile& file : pending.text.files) {
      tests = tests || is_test_file(file.path);
      if (edited.empty() && !agent::language_of_file(file.path).empty()) edited = file.path;
    }
    if (!tests && edited.starts_with('/') && (client_->reads_files || options_.local_files)) {
      ++pending.reads;
      for (std::string& path : test_paths(edited)) read_file(pending, std::move(path), false);
      --pending.reads;
      if (pending.reads > 0) return;  // files_read() is called again
    }
  }
  start_turn(pending);
}

void AcpPeer::start_turn(Pending& pending) {
  const std::string session = pending.prompt.session;
  if (!pending.read_error.empty() && pending.text.files.empty()) return fail(session, {Code::kInvalidParams, pending.read_error});
  auto task = make_task(pending.text);
  if (!task) return fail(session, {Code::kInvalidParams, "prompt: " + task.error()});
  pending.before = task->before;
  pending.text = {};
  const auto begun = hub_.prompt(who_, session, *std::move(task),
                                 {.budget = pending.prompt.budget, .key = pending.prompt.key, .traceparent = pending.prompt.traceparent}, outbox_);
  if (begun) {
    pending.running = true;
    return;
  }
  Error error{Code::kInternalError, begun.error().detail};
  switch (begun.error().kind) {
    case HubError::Kind::unknown: error.code = Code::kNotFound; break;
    case HubError::Kind::invalid: error.code = Code::kInvalidParams; break;
    case HubError::Kind::busy: error.code = Code::kBusy; break;
    case HubError::Kind::internal: break;
  }
  if (begun.error().retry_after_seconds > 0) error.data = {{"retryAfterSeconds", begun.error().retry_after_seconds}};
  fail(session, error);
}

void AcpPeer::cancel(const std::string& session) {
  const auto found = prompts_.find(session);
  if (found == prompts_.end()) {
    // Another connection's prompt: whoever watches may stop it.
    if (watches_.contains(session)) (void)hub_.cancel(who_, session);
    return;
  }
  Pending& pending = found->second;
  pending.cancelled = true;
  if (pending.running) {
    (void)hub_.cancel(who_, session);  // its end answers the prompt
    return;
  }
  abandon_requests(pending);
  if (!pending.end.end) pending.end.end = agent::Ended{.outcome = agent::Outcome::cancelled, .detail = "cancelled before it began"};
  answer(session);
}

void AcpPeer::turn_ended(TurnEnd end) {
  const auto found = prompts_.find(end.session);
  if (found == prompts_.end()) return;
  Pending& pending = found->second;
  pending.running = false;
  pending.end = std::move(end);
  conclude(pending);
}

void AcpPeer::conclude(Pending& pending) {
  const std::string session = pending.prompt.session;
  const TurnEnd& end = pending.end;
  if (!end.end) return fail(session, {end.busy ? Code::kBusy : Code::kInternalError, end.error});
  if (pending.cancelled) return answer(session);
  switch (end.end->outcome) {
    case agent::Outcome::handed_over:
      if (!end.end->escalation.empty()) return ask_for_decision(pending);
      break;
    case agent::Outcome::solved:
    case agent::Outcome::declined:
      if (end.program.empty() || !end.file.starts_with('/') || !client_->writes_files || end.program == pending.before) break;
      if (modes_[session] == "ask") return ask_to_write(pending);
      if (modes_[session] == "write") return write_file(pending);
      break;
    case agent::Outcome::failed:
      return fail(session, {Code::kInternalError, end.end->detail, {{"fixpoint", acp::outcome(end)}}});
    case agent::Outcome::budget_exhausted:
    case agent::Outcome::stuck:
    case agent::Outcome::cancelled: break;
  }
  answer(session);
}

void AcpPeer::ask_for_decision(Pending& pending) {
  ask(pending, "session/request_permission", acp::ask_for_decision(pending.end, kMoreRounds, hub_.has_specialist()),
      [this](Pending& open, const Reply& reply) { decided(open.prompt.session, reply); });
}

void AcpPeer::decided(const std::string& session, const Reply& reply) {
  Pending& pending = prompts_.at(session);
  const auto chosen = reply ? acp::parse_permission(*reply) : tl::unexpected(reply.error().message);
  std::optional<Decision> decision;
  if (chosen && *chosen == "more_rounds") decision = Decision::more_rounds;
  if (chosen && *chosen == "specialist") decision = Decision::specialist;
  if (chosen && *chosen == "take_best") decision = Decision::take_best;
  // Everything else (a person, cancelled, a client that can't ask) leaves it to a person.
  if (!decision || !hub_.decide(who_, session, pending.end.end->escalation, *decision, outbox_)) return answer(session);
  pending.running = true;
}

void AcpPeer::ask_to_write(Pending& pending) {
  ask(pending, "session/request_permission", acp::ask_to_write(pending.end, pending.before), [this](Pending& open, const Reply& reply) {
    const std::string session = open.prompt.session;
    const auto chosen = reply ? acp::parse_permission(*reply) : tl::unexpected(reply.error().message);
    if (chosen && *chosen == "always") {
      if (const auto record = hub_.set_mode(who_, session, "write")) {
        modes_[session] = record->mode;
        hub_.announce(session, jsonrpc::dump({{"sessionUpdate", "current_mode_update"}, {"currentModeId", record->mode}}), nullptr);
      }
    }
    if (chosen && (*chosen == "write" || *chosen == "always")) return write_file(open);
    answer(session);
  });
}

void AcpPeer::write_file(Pending& pending) {
  const Json params{{"sessionId", pending.prompt.session}, {"path", pending.end.file}, {"content", pending.end.program}};
  ask(pending, "fs/write_text_file", params,
      [this](Pending& open, const Reply& reply) { answer(open.prompt.session, reply.has_value()); });
}

void AcpPeer::answer(const std::string& session, bool written) {
  const auto found = prompts_.find(session);
  if (found == prompts_.end()) return;
  const Pending pending = std::move(found->second);
  prompts_.erase(found);
  send(jsonrpc::result(pending.id, acp::prompt_result(pending.end, pending.cancelled, written)));
}

void AcpPeer::fail(const std::string& session, const Error& error) {
  const auto found = prompts_.find(session);
  if (found == prompts_.end()) return;
  Pending pending = std::move(found->second);
  prompts_.erase(found);
  abandon_requests(pending);
  send(jsonrpc::error(pending.id, error));
}

}  // namespace fixpoint::server
