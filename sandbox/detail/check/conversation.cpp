#include "sandbox/detail/check/conversation.h"

#include "sandbox/detail/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace fixpoint::sandbox::detail {
namespace {

using Clock = std::chrono::steady_clock;

Pipe open_pipe() {
  auto pipe = make_pipe();
  if (!pipe) throw std::system_error(errno, std::generic_category(), "pipe2");
  return *std::move(pipe);
}

// Questions without an answer take no more of a pipe than this. It holds whole pages, not all of them full, and has only two of
// them where its user has very many pipes.
std::size_t surely_fits(const UniqueFd& pipe) {
  constexpr int most = 16 << 10;
  return static_cast<std::size_t>(std::clamp(::fcntl(pipe.get(), F_GETPIPE_SZ) / 4, 0, most));
}

// A driver that has this many questions before it is not watched at once for its next answer: it would wake its judge for every
// one, which takes both longer than an answer does.
constexpr std::size_t many_questions = 16;
constexpr std::chrono::microseconds many_answers_take{100};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1 << 30));
}

}  // namespace

struct Conversation::State {
  State(Sandbox& sandbox_in, std::size_t max_frame_bytes) : sandbox(sandbox_in), reader(max_frame_bytes) {}

  Sandbox& sandbox;
  MessageReader reader;
  Pipe questions = open_pipe();  // its read end stays open here until the run has ended, so that no write raises SIGPIPE
  Pipe answers = open_pipe();
  const std::size_t ahead_bytes = surely_fits(questions.write);
  struct Asked {
    std::string nonce;
    std::size_t bytes;
  };
  std::deque<Asked> asked;  // in order; the last one must wait for answers where `held` is not empty
  std::size_t asked_bytes = 0;
  std::string held;
  std::string outgoing;  // questions before it that are not sent yet
  [[nodiscard]] bool may_send_last() const { return asked.size() <= 1 || asked_bytes <= ahead_bytes; }
  std::optional<Silence> unsent;  // why a question could not be sent
  std::stop_source source;
  Job job;
  Verdict verdict;
  std::optional<std::stop_callback<std::function<void()>>> outer;
  std::jthread run;
};

Conversation::Conversation(Sandbox& sandbox, Job job, std::size_t max_frame_bytes, std::stop_token stop)
    : state_(std::make_unique<State>(sandbox, max_frame_bytes)) {
  State& state = *state_;
  ::fcntl(state.questions.write.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(state.answers.read.get(), F_SETFL, O_NONBLOCK);
  state.job = std::move(job);
  state.job.judge = JudgeChannel{state.questions.read.get(), state.answers.write.get()};
  state.outer.emplace(std::move(stop), [source = state.source]() mutable { source.request_stop(); });
  state.run = std::jthread([&state] {
    state.verdict = state.sandbox.run(state.job, state.source.get_token());
    state.answers.write.reset();  // the last writer: the judge sees the end
  });
}

Conversation::~Conversation() {
  if (state_) finish(true);
}

bool Conversation::send(const Value& message, Clock::time_point deadline) { return send(message_bytes(message), deadline); }

bool Conversation::send(const std::string& bytes, Clock::time_point deadline) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::write(state_->questions.write.get(), bytes.data() + sent, bytes.size() - sent);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    // Answers are watched too: their end is how the end of the run shows.
    pollfd watched[2] = {{state_->questions.write.get(), POLLOUT, 0}, {state_->answers.read.get(), 0, 0}};
    const int ready = ::poll(watched, 2, milliseconds_until(deadline));
    if (ready == 0 || (watched[1].revents & (POLLHUP | POLLERR)) != 0) return false;
  }
  return true;
}

tl::expected<Value, Silence> Conversation::receive(Clock::time_point deadline) {
  char buffer[64 << 10];
  bool waited = state_->asked.size() <= many_questions;
  while (true) {
    auto message = state_->reader.next();
    if (!message) return tl::unexpected(Silence::garbled);
    if (*message) return std::move(**message);
    const ssize_t n = ::read(state_->answers.read.get(), buffer, sizeof buffer);
    if (n > 0) {
      state_->reader.feed({buffer, static_cast<std::size_t>(n)});
      continue;
    }
    if (n == 0) return tl::unexpected(Silence::ended);
    if (errno != EAGAIN && errno != EINTR) return tl::unexpected(Silence::ended);
    if (!std::exchange(waited, true)) {
      std::this_thread::sleep_for(many_answers_take);
      continue;
    }
    pollfd watched{state_->answers.read.get(), POLLIN, 0};
    if (::poll(&watched, 1, milliseconds_until(deadline)) == 0) return tl::unexpected(Silence::late);
  }
}

tl::expected<Answer, Silence> Conversation::ask(const char* kind, std::vector<Value> parts, Clock::time_point deadline) {
  const Value nonce = fresh_nonce();
  std::vector<Value> message;
  message.reserve(parts.size() + 2);
  message.push_back(Value::of(kind));
  message.push_back(nonce);
  for (Value& part : parts) message.push_back(std::move(part));
  ask_ahead(message_bytes(Value::tuple_of(std::move(message))), nonce);
  return next_answer(deadline);
}

bool Conversation::owes_answers() const { return !state_->asked.empty(); }

bool Conversation::may_ask() const {
  return state_->held.empty() && !state_->unsent && (state_->asked.empty() || state_->asked_bytes < state_->ahead_bytes);
}

bool Conversation::runs_low() const { return state_->asked.size() <= 1 || state_->asked_bytes < state_->ahead_bytes / 2; }

void Conversation::ask_ahead(std::string message, const Value& nonce) {
  State& state = *state_;
  // A message that came before any question was asked answers nothing.
  if (state.asked.empty() && state.reader.buffered() > 0) state.unsent = Silence::garbled;
  state.asked.push_back({nonce.text, message.size()});
  state.asked_bytes += message.size();
  (state.may_send_last() ? state.outgoing : state.held) += message;
}

// What surely fits, all at once; the oldest question may be of any size: the driver has nothing else to do than to read it.
void Conversation::send_questions(Clock::time_point deadline) {
  State& state = *state_;
  if (!state.held.empty() && state.may_send_last()) state.outgoing += std::exchange(state.held, {});
  if (state.outgoing.empty() || state.unsent) return;
  if (!send(state.outgoing, deadline)) state.unsent = Clock::now() >= deadline ? Silence::late : Silence::ended;
  state.outgoing.clear();
}

tl::expected<Answer, Silence> Conversation::next_answer(Clock::time_point deadline) {
  State& state = *state_;
  send_questions(deadline);
  // Answers that were given before the pipe broke still count; the question that broke it has none.
  if (state.asked.size() <= 1 && state.unsent) return tl::unexpected(*state.unsent);
  if (state.asked.empty()) return tl::unexpected(Silence::garbled);
  auto reply = receive(deadline);
  if (!reply) return tl::unexpected(reply.error());
  auto answer = parse_answer(std::move(*reply));
  if (!answer || answer->nonce != state.asked.front().nonce) return tl::unexpected(Silence::garbled);
  state.asked_bytes -= state.asked.front().bytes;
  state.asked.pop_front();
  // What may have to wait for the driver is sent in the time of its own call.
  if (!state.held.empty() && state.asked_bytes <= state.ahead_bytes) send_questions(deadline);
  return std::move(*answer);
}

std::optional<Silence> Conversation::end(Clock::time_point deadline) {
  const Value nonce = fresh_nonce();
  if (owes_answers() || state_->reader.buffered() > 0) return Silence::garbled;
  if (!send(Value::tuple_of({Value::of("end"), nonce}), deadline)) return Clock::now() >= deadline ? Silence::late : Silence::ended;
  const auto reply = receive(deadline);
  if (!reply) return reply.error();
  if (reply->kind != Value::Kind::tuple || reply->items.size() != 2) return Silence::garbled;
  if (reply->items[0].text != "bye" || reply->items[1].text != nonce.text) return Silence::garbled;
  const auto after = receive(deadline);
  if (after) return Silence::garbled;
  return after.error() == Silence::ended ? std::nullopt : std::optional(after.error());
}

Verdict Conversation::finish(bool stop_now) {
  if (stop_now) state_->source.request_stop();
  if (state_->run.joinable()) state_->run.join();
  state_->outer.reset();
  return state_->verdict;
}

Value fresh_nonce() {
  char bytes[16];
  std::size_t have = 0;
  while (have < sizeof bytes) {
    const ssize_t n = ::getrandom(bytes + have, sizeof bytes - have, 0);
    if (n < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  return Value::bytes_of(std::string(bytes, sizeof bytes));
}

}  // namespace fixpoint::sandbox::detail
