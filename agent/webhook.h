#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "agent/journal.h"

namespace fixpoint::agent {

struct WebhookOptions {
  std::string url;
  std::string secret;  ///< signs each message; empty: messages are not signed
  std::string ca_file;
  int max_attempts = 10;
  std::chrono::milliseconds first_backoff{1'000};  ///< doubled after each failure, at most ten minutes
  std::chrono::milliseconds timeout{10'000};
};

/// Why nothing can be posted to `url`; nothing where it can.
[[nodiscard]] std::optional<std::string> refused_webhook(std::string_view url);

/// Tells people of hand-overs: takes the messages that hand-overs leave in the journal and posts each as JSON until the
/// other side says 2xx, at least once each. Has a thread of its own; no loop ever waits for it, and what is not delivered
/// when it dies is delivered by the next one that opens the journal.
///
/// Headers: X-Fixpoint-Delivery (the same number for every try), X-Fixpoint-Timestamp (seconds), and
/// X-Fixpoint-Signature: "sha256=" + hex(HMAC-SHA256(secret, timestamp + "." + body)).
class Webhook {
 public:
  /// `journal` outlives the webhook. Turns its deliveries on.
  Webhook(Journal& journal, WebhookOptions options);
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;
  ~Webhook();  ///< ends a post under way

  /// Waits until nothing is due any more, at most `patience`. For programs that are about to end.
  void drain(std::chrono::milliseconds patience);

 private:
  void run(const std::stop_token& stop);
  /// One message, if one is due. False: none.
  bool deliver(const std::stop_token& stop);

  Journal* journal_;
  WebhookOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool idle_ = false;   // guarded by mutex_: the last look found nothing due
  bool look_ = false;   // guarded by mutex_: look again now
  std::jthread thread_;
};

/// The signature header's value.
[[nodiscard]] std::string webhook_signature(std::string_view secret, std::string_view timestamp, std::string_view body);

}  // namespace fixpoint::agent
