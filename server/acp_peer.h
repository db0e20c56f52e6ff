#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/acp.h"
#include "server/outbox.h"
#include "server/session_hub.h"

namespace fixpoint::server {

/// The agent's side of one ACP connection, whatever carries it: text in, text out through an outbox. Runs no loop of its own
/// and never waits. One thread at a time; the outbox alone is shared with the hub's threads.
class AcpPeer {
 public:
  struct Options {
    std::string version = "0";   ///< of the agent, for initialize
    jsonrpc::Limits limits;
    bool local_files = false;    ///< files that the client can't read are read from this machine's disk (stdio)
    int page = 50;               ///< sessions of one session/list
  };
  /// `hub` outlives the peer.
  AcpPeer(SessionHub& hub, Principal who, std::shared_ptr<Outbox> outbox, Options options);
  AcpPeer(const AcpPeer&) = delete;
  AcpPeer& operator=(const AcpPeer&) = delete;
  /// The sessions live on.
  ~AcpPeer();

  /// One message of the client. May be anything.
  void receive(std::string_view text);
  /// A binary frame.
  void refuse_binary();

  /// The text of what the outbox gave; nothing where it is only for the peer itself (the end of a turn).
  [[nodiscard]] std::optional<std::string> render(Outbox::Entry entry);

  /// Nothing is asked that waits for an answer.
  [[nodiscard]] bool idle() const { return prompts_.empty() && asked_.empty(); }
  [[nodiscard]] bool initialized() const { return client_.has_value(); }

 private:
  using Json = jsonrpc::Json;
  using Id = jsonrpc::Id;
  using Reply = tl::expected<Json, jsonrpc::Error>;
  using OnAnswer = std::function<void(const Reply&)>;

  /// A session/prompt that has no answer yet.
  struct Pending {
    std::uint64_t number = 0;  ///< tells it from a later one of the same session
    Id id;
    acp::Prompt prompt;
    std::string cwd;
    PromptText text;
    std::size_t reads = 0;     ///< files that are being read
    bool looked_for_tests = false;
    bool running = false;      ///< the hub works on it
    bool cancelled = false;
    std::string before;        ///< the edited file's text
    std::string read_error;
    TurnEnd end;
    std::vector<std::string> requests;  ///< ours to the client that are open
  };

  void handle(jsonrpc::Request request);
  void handle(jsonrpc::Response response);
  [[nodiscard]] Reply call(const std::string& method, const Json& params);
  [[nodiscard]] Reply initialize(const Json& params);
  [[nodiscard]] Reply new_session(const Json& params);
  [[nodiscard]] Reply list_sessions(const Json& params);
  [[nodiscard]] Reply load_session(const Json& params);
  [[nodiscard]] Reply close_session(const Json& params);
  [[nodiscard]] Reply set_mode(const Json& params);
  [[nodiscard]] Reply set_config(const Json& params);
  void resume_session(const Id& id, const Json& params);
  void prompt(const Id& id, const Json& params);
  void notified(const std::string& method, const Json& params);
  void cancel(const std::string& session);
  void cancel_request(const Id& id);

  // A prompt's way: files are read, the turn runs, a person decides, the file is written, the answer.
  void read_files(Pending& pending);
  void read_file(Pending& pending, std::string path, bool must);
  void files_read(const std::string& session);
  void start_turn(Pending& pending);
  void turn_ended(TurnEnd end);
  void conclude(Pending& pending);
  void ask_for_decision(Pending& pending);
  void decided(const std::string& session, const Reply& reply);
  void ask_to_write(Pending& pending);
  void write_file(Pending& pending);
  void answer(const std::string& session, bool written = false);
  void fail(const std::string& session, const jsonrpc::Error& error);
  void abandon_requests(Pending& pending);

  /// Asks the client something for a prompt; the answer is heard while that prompt is open.
  void ask(Pending& pending, const char* method, const Json& params, std::function<void(Pending&, const Reply&)> on_answer);
  [[nodiscard]] Pending* find(const std::string& session, std::uint64_t number);
  void send(std::string json) { outbox_->put(Outbox::Message{std::move(json)}); }
  [[nodiscard]] std::optional<jsonrpc::Error> watch(const std::string& session, std::int64_t after);

  SessionHub& hub_;
  const Principal who_;
  const std::shared_ptr<Outbox> outbox_;
  const Options options_;
  std::optional<acp::ClientInfo> client_;
  std::map<std::string, std::shared_ptr<SessionHub::Watch>> watches_;
  std::map<std::string, std::string> modes_;  ///< of the sessions that are open here
  std::map<std::string, std::string> cwds_;
  std::map<std::string, Pending> prompts_;    ///< by session
  std::map<std::string, OnAnswer> asked_;     ///< our requests, by id
  std::uint64_t last_number_ = 0;
};

}  // namespace fixpoint::server
