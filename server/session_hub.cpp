#include "server/session_hub.h"

#include <algorithm>

#include "server/detail/conversation.h"
#include "server/event_log.h"
#include "server/tenancy.h"

namespace fixpoint::server {
namespace {

using Kind = HubError::Kind;

tl::unexpected<HubError> from(const StoreError& error) {
  const Kind kind = error.kind == StoreError::Kind::unknown ? Kind::unknown : error.kind == StoreError::Kind::conflict ? Kind::busy : Kind::internal;
  return hub_error(kind, error.detail);
}

bool is_name(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

}  // namespace

SessionHub::SessionHub(Services& services, SessionStore& store, Options options)
    : services_(services),
      store_(store),
      options_(options),
      pool_(std::make_unique<TurnPool>(static_cast<std::size_t>(std::max(1, services.max_running_sessions)), options.max_queued)) {}

SessionHub::~SessionHub() {
  interrupt_all();
  pool_.reset();
}

SessionHub::Result<SessionRecord> SessionHub::create(const Principal& who, const std::string& cwd) {
  if (services_.draining) return hub_error(Kind::busy, "the server is about to end");
  SessionRecord record{.id = new_session_id(who.tenant), .cwd = cwd, .mode = "ask"};
  record.rounds = std::to_string(services_.loop.task.rounds);
  record.drafts = std::to_string(services_.loop.drafts);
  record.feedback = to_string(services_.loop.feedback);
  record.own_tests = services_.loop.own_tests ? "on" : "off";
  if (const auto stored = store_.put(record); !stored) return from(stored.error());
  return record;
}

SessionHub::Result<std::vector<SessionRecord>> SessionHub::list(const Principal& who, const std::string& cwd, int limit,
                                                                const std::string& cursor) {
  if (!cursor.empty() && (!is_name(cursor) || !may_see(who, cursor))) return hub_error(Kind::invalid, "cursor: not one of this list");
  auto records = store_.list(who.tenant == "local" ? "" : who.tenant + "-", cwd, limit, cursor);
  if (!records) return from(records.error());
  return *std::move(records);
}

SessionHub::Result<SessionHub::SharedSession> SessionHub::acquire(const Principal& who, const std::string& id) {
  // Whoever may not see a session learns no more than that it does not exist for them.
  if (!is_name(id) || !may_see(who, id)) return hub_error(Kind::unknown, "no session " + id.substr(0, 64));
  SharedSession session;
  {
    const std::scoped_lock lock(mutex_);
    std::weak_ptr<Session>& known = sessions_[id];
    session = known.lock();
    if (!session) {
      session = std::make_shared<Session>();
      session->record.id = id;
      known = session;
      std::erase_if(sessions_, [](const auto& entry) { return entry.second.expired(); });
    }
  }
  const std::scoped_lock lock(session->mutex);
  if (const auto loaded = load(*session); !loaded) return tl::unexpected(loaded.error());
  return session;
}

SessionHub::Result<SessionHub::Opened> SessionHub::open(const Principal& who, const std::string& id) {
  auto session = acquire(who, id);
  if (!session) return tl::unexpected(session.error());
  const std::scoped_lock lock((*session)->mutex);
  Session& it = **session;
  if (it.record.at_work && !it.running && !services_.draining) {
    // A crash interrupted it. Where another process runs it after all, its lock says so.
    (void)start(*session, Work{.who = who, .trace = new_trace()});
  }
  return Opened{it.record, it.last_seq, it.running};
}

SessionHub::Result<std::shared_ptr<SessionHub::Watch>> SessionHub::watch(const Principal& who, const std::string& id, std::int64_t after,
                                                                         const std::shared_ptr<Outbox>& outbox) {
  auto session = acquire(who, id);
  if (!session) return tl::unexpected(session.error());
  const std::scoped_lock lock((*session)->mutex);
  Session& it = **session;
  if (after > it.last_seq) {
    return hub_error(Kind::invalid, "lastSeq: " + std::to_string(after) + " is beyond the last update, " + std::to_string(it.last_seq));
  }
  auto missing = history(it, after);
  if (!missing) return tl::unexpected(missing.error());
  const bool known = std::any_of(it.watchers.begin(), it.watchers.end(), [&](const auto& watcher) { return watcher.outbox == outbox; });
  outbox->replay(id, after, *std::move(missing));
  if (known) return std::shared_ptr<Watch>();
  it.watchers.push_back({outbox});
  return std::make_shared<Watch>(*session, outbox.get());
}

SessionHub::Result<void> SessionHub::cancel(const Principal& who, const std::string& id) {
  auto session = acquire(who, id);
  if (!session) return tl::unexpected(session.error());
  std::stop_source stop{std::nostopstate};
  {
    const std::scoped_lock lock((*session)->mutex);
    Session& it = **session;
    if (!it.running) return {};
    if (pool_->remove(id)) {
      // It never began: there is nothing to record, and nothing is left of it.
      if (it.last_event == 0) it.record.turns.pop_back();
      --at_work_;
      finish(it, TurnEnd{.end = agent::Ended{.outcome = agent::Outcome::cancelled, .detail = "cancelled before it began"}});
      return {};
    }
    stop = it.stop;
  }
  stop.request_stop();  // without the lock: what is stopped may call back
  return {};
}

SessionHub::Result<SessionRecord> SessionHub::set_mode(const Principal& who, const std::string& id, const std::string& mode) {
  if (mode != "ask" && mode != "write" && mode != "propose") return hub_error(Kind::invalid, "modeId: not ask, write or propose");
  auto session = acquire(who, id);
  if (!session) return tl::unexpected(session.error());
  const std::scoped_lock lock((*session)->mutex);
  (*session)->record.mode = mode;
  if (const auto saved = save(**session); !saved) return tl::unexpected(saved.error());
  return (*session)->record;
}

SessionHub::Result<SessionRecord> SessionHub::set_option(const Principal& who, const std::string& id, const std::string& option,
                                                         const std::string& value) {
  auto session = acquire(who, id);
  if (!session) return tl::unexpected(session.error());
  const std::scoped_lock lock((*session)->mutex);
  SessionRecord& record = (*session)->record;
  std::string* slot = option == "rounds"      ? &record.rounds
                      : option == "drafts"    ? &record.drafts
                      : option == "feedback"  ? &record.feedback
                      : option == "own_tests" ? &record.own_tests
                                              : nullptr;
  if (slot == nullptr) return hub_error(Kind::invalid, "configId: no option " + option.substr(0, 64));
  const std::string old = std::exchange(*slot, value);
  if (const auto usable = loop_options(record, {}); !usable) {
    *slot = old;
    return tl::unexpected(usable.error());
  }
  if (const auto saved = save(**session); !saved) return tl::unexpected(saved.error());
  return record;
}

void SessionHub::announce(const std::string& id, const std::string& body, const Outbox* except) {
  SharedSession session;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = sessions_.find(id); known != sessions_.end()) session = known->second.lock();
  }
  if (!session) return;
  auto update = std::make_shared<Update>();
  update->body = body;
  const std::scoped_lock lock(session->mutex);
  for (const Session::Watcher& watcher : session->watchers) {
    if (watcher.outbox.get() != except) watcher.outbox->put(id, update);
  }
}

void SessionHub::interrupt_all() {
  ending_.request_stop();
  pool_->close();
  std::vector<SharedSession> alive;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, known] : sessions_) {
      if (auto session = known.lock()) alive.push_back(std::move(session));
    }
  }
  for (const SharedSession& session : alive) {
    std::stop_source stop{std::nostopstate};
    {
      const std::scoped_lock lock(session->mutex);
      stop = session->stop;
    }
    stop.request_stop();
  }
}

void SessionHub::recover() {
  const auto ids = store_.at_work();
  if (!ids) {
    services_.log->write("recovery_failed", {{"detail", ids.error().detail}});
    return;
  }
  for (const std::string& id : *ids) {
    const Principal owner{.tenant = tenant_of_session(id), .use = true};
    (void)open(owner, id);
  }
}

}  // namespace fixpoint::server
