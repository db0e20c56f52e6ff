#include <charconv>
#include <exception>
#include <limits>
#include <random>

#include "agent/journal.h"
#include "server/agent_record.h"
#include "server/detail/conversation.h"
#include "server/event_log.h"
#include "server/tenancy.h"

// How a conversation's turns run. Every function that takes a Session& is called with its lock.
namespace fixpoint::server {
namespace {

using Kind = HubError::Kind;

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

agent::SessionStarted start_of(const TurnRecord& turn) {
  if (auto event = agent::parse_event(turn.start)) {
    if (auto* started = std::get_if<agent::SessionStarted>(&*event)) return std::move(*started);
  }
  return {};
}

/// What one amount of a wish asks for, if it is no more than what there may be.
template <class T>
std::optional<HubError> apply_wish(T& amount, const std::optional<T>& wish, const T& most, const char* name) {
  if (!wish) return std::nullopt;
  if (*wish > most) return HubError{Kind::invalid, std::string("_meta.fixpoint.budget.") + name + ": more than this service gives"};
  amount = *wish;
  return std::nullopt;
}

}  // namespace

SessionHub::Result<agent::LoopOptions> SessionHub::loop_options(const SessionRecord& record, const acp::BudgetWish& wish) const {
  agent::LoopOptions options = services_.loop;
  const auto rounds = number(record.rounds);
  if (!rounds || *rounds < 0 || *rounds > options_.most.rounds) return hub_error(Kind::invalid, "rounds: not within 0.." + std::to_string(options_.most.rounds));
  options.task.rounds = *rounds;
  const auto drafts = number(record.drafts);
  if (!drafts || *drafts < 1 || *drafts > 16) return hub_error(Kind::invalid, "drafts: not within 1..16");
  options.drafts = *drafts;
  const auto feedback = agent::parse_feedback(record.feedback);
  if (!feedback) return hub_error(Kind::invalid, "feedback: " + feedback.error());
  options.feedback = *feedback;
  if (record.own_tests != "on" && record.own_tests != "off") return hub_error(Kind::invalid, "own_tests: not on or off");
  options.own_tests = record.own_tests == "on";
  for (const auto& error : {apply_wish(options.task.rounds, wish.rounds, options_.most.rounds, "rounds"),
                            apply_wish(options.task.tokens, wish.tokens, options_.most.tokens, "tokens"),
                            apply_wish(options.task.wall, wish.wall, options_.most.wall, "wallMs"),
                            apply_wish(options.task.sandbox, wish.sandbox, options_.most.sandbox, "sandboxMs")}) {
    if (error) return tl::unexpected(*error);
  }
  options.round.tokens = std::min(options.round.tokens, options.task.tokens);
  if (options.seed == 0) options.seed = std::random_device{}();
  // Somebody is there to be asked when nothing else helps.
  const bool asks = std::any_of(options.ladder.begin(), options.ladder.end(), [](const agent::Rung& rung) { return rung.kind == agent::RungKind::person; });
  if (!asks) options.ladder.push_back({.kind = agent::RungKind::person, .attempts = 1});
  return options;
}

SessionHub::Result<void> SessionHub::load(Session& session) {
  if (session.loaded) return {};
  auto record = store_.get(session.record.id);
  if (!record) {
    return hub_error(record.error().kind == StoreError::Kind::unknown ? Kind::unknown : Kind::internal, record.error().detail);
  }
  session.record = *std::move(record);
  session.last_seq = session.sealed_updates();
  session.last_event = 0;
  if (const TurnRecord* turn = session.last_turn(); turn != nullptr && !turn->sealed) {
    const auto events = services_.agent.journal->events(turn->name);
    if (!events && events.error().kind != agent::JournalError::Kind::unknown) return hub_error(Kind::internal, events.error().detail);
    Projection projection(*turn, static_cast<int>(session.record.turns.size()), session.record.cwd, session.last_seq);
    for (const agent::Stamped& stamped : events ? *events : std::vector<agent::Stamped>{}) (void)projection.apply(stamped);
    session.last_seq = projection.last_seq();
    session.last_event = projection.last_event();
  }
  session.loaded = true;
  return {};
}

SessionHub::Result<void> SessionHub::save(Session& session) {
  const auto stored = store_.put(session.record);
  if (stored) return {};
  const bool conflict = stored.error().kind == StoreError::Kind::conflict;
  if (conflict && !session.projection) session.loaded = false;  // read anew next time
  return hub_error(conflict ? Kind::busy : Kind::internal, stored.error().detail);
}

SessionHub::Result<std::vector<SharedUpdate>> SessionHub::history(const Session& session, std::int64_t after) const {
  std::vector<SharedUpdate> missing;
  std::int64_t base = 0;
  for (std::size_t i = 0; i < session.record.turns.size(); ++i) {
    const TurnRecord& turn = session.record.turns[i];
    if (turn.sealed && base + turn.updates <= after) {
      base += turn.updates;
      continue;
    }
    const auto events = services_.agent.journal->events(turn.name);
    if (!events) {
      if (events.error().kind == agent::JournalError::Kind::unknown) continue;  // it never began
      return hub_error(Kind::internal, events.error().detail);
    }
    const std::int64_t last = turn.sealed ? turn.events : session.last_event;
    Projection projection(turn, static_cast<int>(i) + 1, session.record.cwd, base);
    for (const agent::Stamped& stamped : *events) {
      if (stamped.seq > last) break;
      for (SharedUpdate& update : projection.apply(stamped)) {
        if (update->seq > after) missing.push_back(std::move(update));
      }
    }
    base = turn.sealed ? base + turn.updates : projection.last_seq();
  }
  return missing;
}

void SessionHub::publish(Session& session, const agent::Stamped& stamped) {
  if (stamped.seq <= session.last_event) return;
  if (stamped.seq > session.last_event + 1) catch_up(session, stamped.seq);
  for (SharedUpdate& update : session.projection->apply(stamped)) {
    for (const Session::Watcher& watcher : session.watchers) {
      if (!(update->echo && watcher.asked)) watcher.outbox->put(session.record.id, update);
    }
    session.last_seq = update->seq;
  }
  session.last_event = stamped.seq;
}

/// Announces what others wrote to the journal: a hint, a person's program.
void SessionHub::catch_up(Session& session, std::int64_t before_event) {
  const auto events = services_.agent.journal->events(session.last_turn()->name, session.last_event);
  if (!events) return;
  for (const agent::Stamped& stamped : *events) {
    if (stamped.seq < before_event && stamped.seq == session.last_event + 1) publish(session, stamped);
  }
}

void SessionHub::seal_last_turn(Session& session) {
  TurnRecord* turn = session.last_turn();
  if (turn == nullptr || turn->sealed) return;
  turn->sealed = true;
  turn->events = session.last_event;
  turn->updates = session.last_seq - session.sealed_updates();
  turn->start.clear();
}

SessionHub::Result<void> SessionHub::prompt(const Principal& who, const std::string& id, PromptTask task, const PromptOptions& options,
                                            const std::shared_ptr<Outbox>& outbox) {
  auto acquired = acquire(who, id);
  if (!acquired) return tl::unexpected(acquired.error());
  const std::scoped_lock lock((*acquired)->mutex);
  Session& session = **acquired;
  const auto trace = parse_traceparent(options.traceparent);
  Work work{.who = who, .trace = trace ? child_of(*trace) : new_trace()};
  if (!options.key.empty() && session.last_turn() != nullptr && session.last_turn()->key == options.key) {
    return repeat(*acquired, std::move(work), outbox);
  }
  if (services_.draining) return hub_error(Kind::busy, "the server is about to end");
  if (session.running || session.record.at_work) return hub_error(Kind::busy, "a prompt of this session is at work");
  auto loop = loop_options(session.record, options.budget);
  if (!loop) return tl::unexpected(loop.error());
  auto place = services_.admission->begin(who);
  if (!place) {
    return tl::unexpected(HubError{Kind::busy, place.error().detail, static_cast<int>(place.error().retry_after.count())});
  }
  work.place = *std::move(place);
  const SessionRecord before = session.record;
  const std::int64_t before_event = session.last_event;
  seal_last_turn(session);
  if (session.record.title.empty()) session.record.title = agent::title(task.task);
  session.record.turns.push_back({.name = id + "." + std::to_string(session.record.turns.size() + 1),
                                  .key = options.key,
                                  .start = agent::to_json(agent::Event(agent::SessionStarted{.task = std::move(task.task), .options = *std::move(loop)})),
                                  .file = std::move(task.file),
                                  .before = std::move(task.before)});
  session.last_event = 0;
  auto started = start(*acquired, std::move(work));
  if (!started) {
    const std::int64_t version = session.record.version;
    session.record = before;
    session.record.version = version;
    session.last_event = before_event;
    return started;
  }
  session.ask(outbox);
  return started;
}

/// The same prompt, sent again: its turn's end is what it asks for.
SessionHub::Result<void> SessionHub::repeat(const SharedSession& shared, Work work, const std::shared_ptr<Outbox>& outbox) {
  Session& session = *shared;
  session.ask(outbox);
  if (session.running) return {};
  const TurnRecord& turn = *session.last_turn();
  const auto events = services_.agent.journal->events(turn.name);
  Projection projection(turn, static_cast<int>(session.record.turns.size()), session.record.cwd, 0);
  for (const agent::Stamped& stamped : events ? *events : std::vector<agent::Stamped>{}) (void)projection.apply(stamped);
  if (session.record.at_work || !projection.progress().ended) return start(shared, std::move(work));
  outbox->put(TurnEnd{.session = session.record.id,
                      .turn = turn.name,
                      .end = projection.progress().end,
                      .program = projection.best_program(),
                      .file = turn.file,
                      .seq = session.last_seq});
  for (Session::Watcher& watcher : session.watchers) watcher.asked = watcher.asked && watcher.outbox != outbox;
  return {};
}

SessionHub::Result<void> SessionHub::start(const SharedSession& shared, Work work) {
  Session& session = *shared;
  session.record.at_work = true;
  session.running = true;
  if (auto saved = save(session); !saved) {
    session.running = false;
    session.record.at_work = false;
    return saved;
  }
  session.stop = std::stop_source();
  session.projection = std::make_unique<Projection>(*session.last_turn(), static_cast<int>(session.record.turns.size()), session.record.cwd,
                                                    session.sealed_updates());
  if (session.last_event > 0) {
    const auto events = services_.agent.journal->events(session.last_turn()->name);
    for (const agent::Stamped& stamped : events ? *events : std::vector<agent::Stamped>{}) {
      if (stamped.seq <= session.last_event) (void)session.projection->apply(stamped);
    }
  }
  ++at_work_;
  auto shared_work = std::make_shared<Work>(std::move(work));  // std::function must be copyable
  if (pool_->add(session.record.id, [this, shared, shared_work] { run(shared, *shared_work); })) return {};
  --at_work_;
  session.running = false;
  session.projection.reset();
  if (!ending_.stop_requested()) {
    session.record.at_work = false;
    (void)save(session);
  }
  return hub_error(Kind::busy, "too many prompts wait already");
}

void SessionHub::run(const SharedSession& shared, const Work& work) {
  TurnRecord turn;
  std::stop_token stop;
  {
    const std::scoped_lock lock(shared->mutex);
    turn = *shared->last_turn();
    stop = shared->stop.get_token();
  }
  agent::Services services = services_.agent_of(tenant_of_session(shared->record.id));
  if (turn.specialist) services.model = services.specialist;
  agent::Loop loop(services);
  const agent::OnEvent on_event = [&](const agent::Stamped& stamped) {
    {
      const std::scoped_lock lock(shared->mutex);
      publish(*shared, stamped);
    }
    record(services_, work.who, work.trace, stamped);
  };
  TurnEnd end;
  bool ended_before = false;  // the last process ended between the turn's end and the note of it
  try {
    const bool begun = services.journal->session(turn.name).has_value();
    const agent::SessionStarted start = begun ? agent::SessionStarted{} : start_of(turn);
    auto result = begun ? loop.resume(turn.name, stop, on_event) : loop.run(start.task, start.options, stop, on_event, turn.name);
    if (result) {
      end.end = result->end;
      end.program = std::move(result->program);
    } else {
      end.error = result.error().detail;
      end.busy = result.error().kind == agent::LoopError::Kind::busy;
      ended_before = result.error().kind == agent::LoopError::Kind::finished;
    }
  } catch (const std::exception& failure) {
    end.error = failure.what();
  }
  --at_work_;
  const std::scoped_lock lock(shared->mutex);
  catch_up(*shared, std::numeric_limits<std::int64_t>::max());
  if (ended_before) {
    end.end = shared->projection->progress().end;
    end.program = shared->projection->best_program();
    end.error.clear();
  }
  finish(*shared, std::move(end));
}

void SessionHub::finish(Session& session, TurnEnd end) {
  session.running = false;
  session.projection.reset();
  // A turn that this process's own end interrupted, or that another one runs, stays at work: it goes on later.
  const bool interrupted = ending_.stop_requested() && (!end.end || end.end->outcome == agent::Outcome::cancelled);
  if (!interrupted && !end.busy) {
    session.record.at_work = false;
    if (const auto saved = save(session); !saved) services_.log->write("session_not_saved", {{"session", session.record.id}, {"detail", saved.error().detail}});
  }
  end.session = session.record.id;
  if (const TurnRecord* turn = session.last_turn()) {
    end.turn = turn->name;
    end.file = turn->file;
  }
  end.seq = session.last_seq;
  for (Session::Watcher& watcher : session.watchers) {
    if (std::exchange(watcher.asked, false)) watcher.outbox->put(end);
  }
}

SessionHub::Result<void> SessionHub::decide(const Principal& who, const std::string& id, const std::string& escalation, Decision decision,
                                            const std::shared_ptr<Outbox>& outbox) {
  auto acquired = acquire(who, id);
  if (!acquired) return tl::unexpected(acquired.error());
  const std::scoped_lock lock((*acquired)->mutex);
  Session& session = **acquired;
  if (session.running || session.record.at_work || session.last_turn() == nullptr) return hub_error(Kind::busy, "the session is at work");
  agent::Journal& journal = *services_.agent.journal;
  const auto row = journal.escalation(escalation);
  if (!row || row->session != session.last_turn()->name) return hub_error(Kind::unknown, "no such escalation of the last prompt");
  const std::string by = who.token_id.empty() ? "the user" : who.token_id;
  auto place = services_.admission->begin(who);
  if (!place) return tl::unexpected(HubError{Kind::busy, place.error().detail, static_cast<int>(place.error().retry_after.count())});
  if (decision == Decision::specialist) {
    if (auto handed = hand_to_specialist(session, escalation, by); !handed) return handed;
  } else {
    // The words are read by the model: with none it would only be asked the same again.
    const auto answered = decision == Decision::more_rounds
                              ? journal.give_hint(escalation, {.by = by, .text = "Try another approach.", .grant = options_.more})
                              : journal.decline(escalation, {.by = by, .reason = "the best program so far was taken"});
    if (!answered) return hub_error(Kind::busy, answered.error().detail);
  }
  if (auto started = start(*acquired, Work{.who = who, .trace = new_trace(), .place = *std::move(place)}); !started) return started;
  session.ask(outbox);
  return {};
}

/// A turn of its own, with what was tried in its statement.
SessionHub::Result<void> SessionHub::hand_to_specialist(Session& session, const std::string& escalation, const std::string& by) {
  if (!has_specialist()) return hub_error(Kind::invalid, "there is no specialist");
  const TurnRecord last = *session.last_turn();
  const auto events = services_.agent.journal->events(last.name);
  if (!events || events->empty()) return hub_error(Kind::internal, "the last prompt is not in the journal");
  Projection tried(last, 1, session.record.cwd, 0);
  for (const agent::Stamped& stamped : *events) (void)tried.apply(stamped);
  agent::SessionStarted start{.task = tried.progress().task, .options = tried.progress().options};
  start.options.ladder = {{.kind = agent::RungKind::person, .attempts = 1}};
  if (const std::string program = tried.best_program(); !program.empty()) {
    start.task.statement += "\n\nThis was tried, and is wrong:\n\n```" + start.task.language + "\n" + program + "```";
  }
  if (const auto closed = services_.agent.journal->decline(escalation, {.by = by, .reason = "the specialist was asked"}); !closed) {
    return hub_error(Kind::busy, closed.error().detail);
  }
  seal_last_turn(session);
  session.record.turns.push_back({.name = session.record.id + "." + std::to_string(session.record.turns.size() + 1),
                                  .key = last.key,
                                  .start = agent::to_json(agent::Event(std::move(start))),
                                  .file = last.file,
                                  .before = last.before,
                                  .specialist = true});
  session.last_event = 0;
  return {};
}

void SessionHub::go_on(const std::string& tenant, const std::string& journal_session) {
  const Principal owner{.tenant = tenant, .use = true};
  const std::string id = journal_session.substr(0, journal_session.find('.'));
  if (auto acquired = acquire(owner, id)) {
    const std::scoped_lock lock((*acquired)->mutex);
    Session& session = **acquired;
    if (const TurnRecord* turn = session.last_turn(); turn != nullptr && turn->name == journal_session) {
      if (!session.running) (void)start(*acquired, Work{.who = owner, .trace = new_trace()});
      return;
    }
  }
  // Not a conversation's last turn: it runs without watchers.
  const auto run_alone = [this, owner, journal_session] {
    agent::Loop loop(services_.agent_of(owner.tenant));
    const TraceContext trace = new_trace();
    const auto result = loop.resume(journal_session, ending_.get_token(),
                                    [&](const agent::Stamped& stamped) { record(services_, owner, trace, stamped); });
    if (!result) services_.log->write("session_not_resumed", {{"session", journal_session}, {"detail", result.error().detail}});
  };
  if (!pool_->add(journal_session, run_alone)) {
    services_.log->write("session_not_resumed", {{"session", journal_session}, {"detail", "too many wait already"}});
  }
}

}  // namespace fixpoint::server
