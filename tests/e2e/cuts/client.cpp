#include "tests/e2e/cuts/client.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/e2e/cuts/story.h"
#include "tests/e2e/cuts/wire.h"

namespace fixpoint::cuts {
namespace {

using std::chrono::microseconds;
namespace fs = std::filesystem;

constexpr int kPrompts = 3;  // of a conversation
constexpr microseconds kForever{120'000'000};
const char* const kTask = "Write `double(x)`: twice the number.\n\n# Tests\n\nassert double(2) == 4\nassert double(-3) == -6\n";

Json hello() { return {{"protocolVersion", 1}, {"clientCapabilities", {{"fs", {{"readTextFile", false}, {"writeTextFile", false}}}}}}; }
Json place(const std::string& session) { return {{"sessionId", session}, {"cwd", "/work"}, {"mcpServers", Json::array()}}; }
void ignore(const Json&) {}

/// What a killed process leaves: whole lines, each written before anything else is done.
class Log {
 public:
  explicit Log(fs::path file) : file_(std::move(file)) {
    std::ifstream in(file_, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    if (whole < text.size()) fs::resize_file(file_, whole);  // it was killed while it wrote
    for (std::size_t at = 0; at < whole;) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(Json::parse(text.substr(at, end - at)));
      at = end + 1;
    }
    open();
  }
  ~Log() { ::close(fd_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(const Json& line) const {
    const std::string text = line.dump() + "\n";
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t written = ::write(fd_, rest.data(), rest.size());
      if (written <= 0) throw std::runtime_error("the log can't be written");
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  /// The conversation is over: the next one has a new file.
  void finish(const fs::path& as) {
    fs::rename(file_, as);
    ::close(fd_);
    open();
  }
  std::vector<Json> lines;  ///< those that were there

 private:
  void open() {
    fd_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd_ < 0) throw std::runtime_error("cannot write " + file_.string());
  }
  fs::path file_;
  int fd_ = -1;
};

class CutClient {
 public:
  CutClient(fs::path folder, std::string name, std::uint16_t port, unsigned seed)
      : folder_(std::move(folder)), name_(std::move(name)), port_(port), random_(seed), log_(folder_ / (name_ + ".log")) {
    for (const Json& line : log_.lines) recall(line);
    log_.lines.clear();
  }

  void run() {
    for (;;) {
      const bool calm = fs::exists(folder_ / "calm");
      const bool done = answered_ == kPrompts;
      if (calm && session_.empty()) return;
      // Most cuts fall into a turn; some into the handshake, some into the wait for the last word.
      const microseconds life = calm || done ? kForever : microseconds(random_() % 4 == 0 ? random_() % 3'000 : random_() % 400'000);
      std::optional<Wire> wire;
      try {
        wire.emplace(port_, life, random_() % 2 == 0);
        (void)wire->call("initialize", hello(), ignore);
        done ? compare(*wire) : converse(*wire);
      } catch (const Broken&) {
        if (wire && wire->cut()) note_cut();
        if (!wire) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the server is not there
      }
    }
  }

 private:
  void recall(const Json& line) {
    if (line.contains("session")) session_ = line["session"];
    if (line.contains("answered")) answered_ = line["answered"];
    if (line.contains("cut")) ++cuts_;
    if (line.contains("update") && !story_.add(line)) throw std::runtime_error("the log itself has a gap");
  }
  void note_cut() {
    if (session_.empty()) log_.write({{"cut", true}, {"session", ""}});
    else log_.write({{"cut", true}});
    ++cuts_;
  }
  void take(const Json& params) {
    if (params["sessionId"] != session_) throw std::runtime_error("an update of another session: " + params.dump());
    const std::int64_t before = story_.seq;
    if (!story_.add(params)) throw std::runtime_error("after " + std::to_string(before) + " came " + params.dump());
    log_.write(params);
  }

  void converse(Wire& wire) {
    const auto on_update = [this](const Json& params) { take(params); };
    if (session_.empty()) {
      const Json made = wire.call("session/new", {{"cwd", "/work"}, {"mcpServers", Json::array()}}, ignore);
      session_ = made["sessionId"];
      log_.write({{"session", session_}});
    } else {
      Json params = place(session_);
      params["_meta"]["fixpoint"]["lastSeq"] = story_.seq;
      (void)wire.call("session/resume", params, on_update);
    }
    while (answered_ < kPrompts) {
      const Json prompt{{"sessionId", session_},
                        {"prompt", Json::array({{{"type", "text"}, {"text", kTask}}})},
                        {"_meta", {{"fixpoint", {{"promptKey", "p" + std::to_string(answered_)}}}}}};
      const Json end = wire.call("session/prompt", prompt, on_update);
      if (end["_meta"]["fixpoint"]["lastSeq"] != story_.seq) {
        throw std::runtime_error("the answer came at " + std::to_string(story_.seq) + " and not after all updates: " + end.dump());
      }
      log_.write({{"answered", ++answered_}});
    }
  }

  void compare(Wire& wire) {
    Story whole;
    (void)wire.call("session/load", place(session_), [&](const Json& params) {
      if (!whole.add(params)) throw std::runtime_error("load has a gap after " + std::to_string(whole.seq));
    });
    if (whole != story_) throw std::runtime_error("what was told is not what is loaded: " + std::to_string(story_.seq) + " and " + std::to_string(whole.seq));
    if (whole.ends.size() != kPrompts) throw std::runtime_error(std::to_string(whole.ends.size()) + " turns for " + std::to_string(kPrompts) + " prompts");
    for (const auto& [turn, ends] : whole.ends) {
      if (ends != 1) throw std::runtime_error("turn " + turn + " of " + session_ + " has " + std::to_string(ends) + " ends");
    }
    log_.write({{"same", true}, {"updates", story_.seq}, {"prompts", kPrompts}, {"session", session_}, {"cuts", cuts_}});
    int number = 0;
    while (fs::exists(folder_ / (name_ + "." + std::to_string(number) + ".done"))) ++number;
    log_.finish(folder_ / (name_ + "." + std::to_string(number) + ".done"));
    session_.clear();
    answered_ = cuts_ = 0;
    story_ = {};
  }

  const fs::path folder_;
  const std::string name_;
  const std::uint16_t port_;
  std::mt19937 random_;
  Log log_;
  std::string session_;
  int answered_ = 0;  ///< prompts of the conversation
  int cuts_ = 0;      ///< of its connections, by the client itself
  Story story_;
};

}  // namespace

int run_client(const fs::path& folder, const std::string& name, std::uint16_t port, unsigned seed) {
  try {
    CutClient(folder, name, port, seed).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return 1;
  }
}

std::set<std::string> list_sessions(std::uint16_t port) {
  Wire wire(port, kForever, false);
  (void)wire.call("initialize", hello(), ignore);
  std::set<std::string> ids;
  Json params = Json::object();
  for (;;) {
    const Json page = wire.call("session/list", params, ignore);
    for (const Json& session : page["sessions"]) ids.insert(session["sessionId"]);
    if (!page.contains("nextCursor") || page["nextCursor"].is_null()) return ids;
    params["cursor"] = page["nextCursor"];
  }
}

}  // namespace fixpoint::cuts
