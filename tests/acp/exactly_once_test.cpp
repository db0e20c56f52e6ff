#include <cstdlib>
#include <random>

#include "tests/acp/acp_client.h"

// Connections and services cut at random points: what a client has seen in the end, joined, is the whole story once.
namespace fixpoint::server {
namespace {

/// What a client keeps over its connections.
struct Story {
  std::int64_t seq = 0;
  std::map<std::string, std::string> texts;  ///< by message
  std::string others;                        ///< updates that are no text, in order

  /// False: an update is missing, or came twice.
  bool add(const Json& frame) {
    if (frame.value("method", "") != "session/update" || !frame["params"].contains("_meta")) return true;
    const Json& ours = frame["params"]["_meta"]["fixpoint"];
    const std::int64_t last = ours["seq"], from = ours.value("from", last);
    if (from != seq + 1) return false;
    seq = last;
    const Json& update = frame["params"]["update"];
    if (update.contains("messageId")) {
      texts[update["messageId"]] += update["content"]["text"];
    } else {
      others += update.dump() + "\n";
    }
    return true;
  }
};

std::string long_answer(const agent::GenerateRequest& request) {
  return agent::depth_of(request) < 2 ? agent::fenced(agent::program(agent::depth_of(request)), "Not yet.") : agent::fenced(agent::program(7), "Now.");
}

/// One conversation of one prompt, cut `cuts` times.
class Trial {
 public:
  explicit Trial(unsigned seed) : random_(seed) {
    service_.services.max_running_sessions = 2;
    service_.answer = [](const agent::GenerateRequest& request, std::stop_token stop) -> tl::expected<agent::Generation, agent::GenerateError> {
      if (stop.stop_requested()) return tl::unexpected(agent::GenerateError{.kind = agent::GenerateError::Kind::cancelled});
      return agent::answer(long_answer(request));
    };
  }

  void run(int cuts) {
    connect();
    client_->initialize();
    session_ = client_->new_session();
    ask();
    for (int i = 0; i < cuts; ++i) {
      for (unsigned taken = random_() % 12; taken > 0; --taken) client_->pump();
      const bool crash = random_() % 3 == 0;
      keep();
      client_.reset();
      if (crash) service_.restart();
      connect();
      client_->initialize();
      const Json reply = client_->call("session/resume", {{"sessionId", session_}, {"cwd", "/work"}, {"_meta", {{"fixpoint", {{"lastSeq", story_.seq}}}}}});
      ASSERT_TRUE(reply.contains("result")) << reply;
      asked_.reset();
      if (random_() % 2 == 0) asked_ = ask();
    }
    // The same prompt once more: its answer comes when all is told.
    const Json end = client_->response(asked_ ? *asked_ : ask());
    ASSERT_TRUE(end.contains("result")) << end;
    ASSERT_EQ(end["result"]["_meta"]["fixpoint"]["outcome"], "solved") << end;
    keep();
    compare(end["result"]["_meta"]["fixpoint"]["lastSeq"]);
  }

 private:
  void connect() { client_ = std::make_unique<Client>(service_); }
  int ask() { return client_->request("session/prompt", Client::text_prompt(session_, kTask, {{"promptKey", "once"}})); }
  void keep() {
    for (const Json& frame : client_->frames) ASSERT_TRUE(story_.add(frame)) << "after " << story_.seq << ": " << frame;
    client_->frames.clear();
  }
  void compare(std::int64_t last) {
    EXPECT_EQ(story_.seq, last);
    Client fresh(service_);
    fresh.initialize();
    fresh.call("session/load", {{"sessionId", session_}, {"cwd", "/work"}, {"mcpServers", Json::array()}});
    Story whole;
    for (const Json& frame : fresh.frames) ASSERT_TRUE(whole.add(frame));
    EXPECT_EQ(whole.seq, story_.seq);
    EXPECT_EQ(whole.others, story_.others);
    // The client that asked is not told what it said itself.
    whole.texts.erase("t1-task");
    story_.texts.erase("t1-task");
    EXPECT_EQ(whole.texts, story_.texts);
  }

  std::mt19937 random_;
  Service service_;
  std::unique_ptr<Client> client_;
  std::string session_;
  std::optional<int> asked_;  ///< on this connection
  Story story_;
};

int cuts_wanted() {
  const char* text = std::getenv("FIXPOINT_ACP_CUTS");
  return text == nullptr ? 200 : std::atoi(text);
}

TEST(ExactlyOnceTest, CutsAtRandomPointsLoseNothingAndRepeatNothing) {
  constexpr int kCutsInTrial = 8;
  for (int i = 0; i * kCutsInTrial < cuts_wanted() && !HasFatalFailure() && !HasNonfatalFailure(); ++i) {
    SCOPED_TRACE("trial " + std::to_string(i));
    Trial(static_cast<unsigned>(i)).run(kCutsInTrial);
  }
}

TEST(ExactlyOnceTest, AServiceThatEndsAndBeginsGoesOnByItself) {
  Service service;
  std::mutex mutex;
  std::condition_variable_any changed;
  bool begun = false, free = false;
  service.answer = [&](const agent::GenerateRequest&, std::stop_token stop) -> tl::expected<agent::Generation, agent::GenerateError> {
    std::unique_lock lock(mutex);
    begun = true;
    changed.notify_all();
    if (!changed.wait(lock, stop, [&] { return free; })) return tl::unexpected(agent::GenerateError{.kind = agent::GenerateError::Kind::cancelled});
    return agent::answer(agent::fenced(agent::program(7)));
  };
  std::string session;
  {
    Client client(service);
    client.initialize();
    session = client.new_session();
    client.request("session/prompt", Client::text_prompt(session, kTask));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun; });
  }
  service.restart();
  service.hub->recover();
  {
    const std::scoped_lock lock(mutex);
    free = true;
    changed.notify_all();
  }
  Client client(service);
  client.initialize();
  client.call("session/resume", {{"sessionId", session}, {"cwd", "/work"}, {"_meta", {{"fixpoint", {{"lastSeq", 0}}}}}});
  client.until([&] {
    const auto infos = client.updates("session_info_update");
    return !infos.empty() && infos.back().contains("_meta") && infos.back()["_meta"]["fixpoint"]["turnEnded"]["outcome"] == "solved";
  }, "the end");
}

}  // namespace
}  // namespace fixpoint::server
