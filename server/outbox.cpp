#include "server/outbox.h"

namespace fixpoint::server {
namespace {

constexpr std::size_t kSlotBytes = 128;  // what an entry costs besides its text

std::size_t bytes_of(const Update& update) { return kSlotBytes + update.body.size() + update.text.size(); }

/// Pieces of one message, in order.
bool joins(const Update& a, const Update& b) {
  return a.body.empty() && b.body.empty() && a.seq != 0 && b.seq != 0 && a.kind == b.kind && a.message == b.message;
}

}  // namespace

bool Outbox::add(Slot slot, std::size_t bytes) {
  if (closed_ || behind_) return false;
  if (bytes_ + bytes > options_.max_bytes) {
    behind_ = true;
    slots_.clear();
    bytes_ = 0;
    return true;
  }
  bytes_ += bytes;
  slots_.push_back(std::move(slot));
  return slots_.size() == 1;
}

void Outbox::wake() {
  const std::scoped_lock lock(waking_);
  if (!silent_) wake_();
}

void Outbox::put(Message message) {
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    const std::size_t bytes = kSlotBytes + message.json.size();
    wake = add(std::move(message), bytes);
  }
  if (wake) this->wake();
}

void Outbox::put(const std::string& session, SharedUpdate update) {
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    Numbered* last = slots_.empty() ? nullptr : std::get_if<Numbered>(&slots_.back());
    if (last != nullptr && last->session == session && joins(*last->update, *update) &&
        last->update->text.size() + update->text.size() <= options_.max_joined && bytes_ + update->text.size() <= options_.max_bytes) {
      // What waits here may be shared with other outboxes: a joined piece is a new value, made once, then added to.
      if (!last->joined) last->update = last->joined = std::make_shared<Update>(*last->update);
      last->joined->text += update->text;
      last->joined->seq = update->seq;
      bytes_ += update->text.size();
    } else {
      const std::size_t bytes = bytes_of(*update);
      wake = add(Numbered{session, std::move(update)}, bytes);
    }
  }
  if (wake) this->wake();
}

void Outbox::put(TurnEnd end) {
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    const std::size_t bytes = kSlotBytes + end.program.size();
    wake = add(std::move(end), bytes);
  }
  if (wake) this->wake();
}

void Outbox::replay(const std::string& session, std::int64_t after, std::vector<SharedUpdate> updates) {
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(slots_, [&](const Slot& slot) {
      if (const auto* waiting = std::get_if<Replay>(&slot)) return waiting->session == session;
      const auto* numbered = std::get_if<Numbered>(&slot);
      if (numbered == nullptr || numbered->session != session || numbered->update->seq == 0) return false;
      bytes_ -= bytes_of(*numbered->update);
      return true;
    });
    wake = add(Replay{session, after, std::move(updates)}, 0);
  }
  if (wake) this->wake();
}

Outbox::Numbered Outbox::covering(std::string session, SharedUpdate update) {
  Numbered numbered{std::move(session), std::move(update)};
  if (numbered.update->seq == 0) return numbered;
  std::int64_t& sent = sent_[numbered.session];
  numbered.from = sent + 1;
  sent = numbered.update->seq;
  return numbered;
}

Outbox::Numbered Outbox::take_replay(Replay& replay) {
  SharedUpdate update = replay.updates[replay.next++];
  std::shared_ptr<Update> joined;
  while (replay.next < replay.updates.size()) {
    const Update& more = *replay.updates[replay.next];
    const Update& have = joined ? *joined : *update;
    if (!joins(have, more) || have.text.size() + more.text.size() > options_.max_joined) break;
    if (!joined) joined = std::make_shared<Update>(*update);
    joined->text += more.text;
    joined->seq = more.seq;
    ++replay.next;
  }
  if (joined) update = std::move(joined);
  return covering(replay.session, std::move(update));
}

std::optional<Outbox::Entry> Outbox::take() {
  const std::scoped_lock lock(mutex_);
  while (!slots_.empty()) {
    auto* replay = std::get_if<Replay>(&slots_.front());
    if (replay == nullptr) break;
    if (replay->next == 0) sent_[replay->session] = replay->after;
    if (replay->next < replay->updates.size()) return take_replay(*replay);
    slots_.pop_front();
  }
  if (slots_.empty()) return std::nullopt;
  Slot slot = std::move(slots_.front());
  slots_.pop_front();
  if (auto* message = std::get_if<Message>(&slot)) {
    bytes_ -= kSlotBytes + message->json.size();
    return std::move(*message);
  }
  if (auto* end = std::get_if<TurnEnd>(&slot)) {
    bytes_ -= kSlotBytes + end->program.size();
    return std::move(*end);
  }
  auto& numbered = std::get<Numbered>(slot);
  bytes_ -= bytes_of(*numbered.update);
  return covering(std::move(numbered.session), std::move(numbered.update));
}

bool Outbox::behind() const {
  const std::scoped_lock lock(mutex_);
  return behind_;
}

void Outbox::close() {
  {
    const std::scoped_lock lock(waking_);
    silent_ = true;
  }
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  slots_.clear();
  bytes_ = 0;
}

std::size_t Outbox::waiting_bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

}  // namespace fixpoint::server
