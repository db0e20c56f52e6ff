#include "agent/webhook.h"

#include <algorithm>

#include "agent/detail/digest.h"
#include "agent/detail/http.h"

namespace fixpoint::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{500};
constexpr milliseconds kLongestBackoff{600'000};

auto time_now() { return std::chrono::floor<milliseconds>(std::chrono::system_clock::now()); }

}  // namespace

std::string webhook_signature(std::string_view secret, std::string_view timestamp, std::string_view body) {
  std::string message(timestamp);
  message.append(".").append(body);
  std::string value = "sha256=";
  return value.append(detail::hmac_sha256_hex(secret, message));
}

std::optional<std::string> refused_webhook(std::string_view url) {
  const auto parsed = detail::parse_url(url);
  return parsed ? std::nullopt : std::optional(parsed.error());
}

Webhook::Webhook(Journal& journal, WebhookOptions options) : journal_(&journal), options_(std::move(options)) {
  journal_->enable_deliveries(true);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Webhook::~Webhook() {
  thread_.request_stop();
  changed_.notify_all();
}

void Webhook::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool delivered = deliver(stop);
    std::unique_lock lock(mutex_);
    idle_ = !delivered;
    changed_.notify_all();
    if (idle_) changed_.wait_for(lock, stop, kLookEvery, [this] { return look_; });
    look_ = false;
  }
}

void Webhook::drain(milliseconds patience) {
  std::unique_lock lock(mutex_);
  idle_ = false;
  look_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, patience, [this] { return idle_; });
}

bool Webhook::deliver(const std::stop_token& stop) {
  const auto due = journal_->next_delivery(time_now());
  if (!due || !*due) return false;
  const Delivery& delivery = **due;
  const auto url = detail::parse_url(options_.url);
  if (!url) return false;
  const std::string timestamp = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time_now().time_since_epoch()).count());
  detail::HttpRequest request{.url = *url,
                              .headers = {{"content-type", "application/json"},
                                          {"x-fixpoint-delivery", std::to_string(delivery.id)},
                                          {"x-fixpoint-timestamp", timestamp}},
                              .body = delivery.body,
                              .ca_file = options_.ca_file,
                              .connect_timeout = options_.timeout,
                              .idle_timeout = options_.timeout,
                              .total_timeout = options_.timeout};
  if (!options_.secret.empty()) {
    request.headers.emplace_back("x-fixpoint-signature", webhook_signature(options_.secret, timestamp, delivery.body));
  }
  const auto head = detail::exchange(request, [](const detail::HttpHead&, std::string_view) { return true; }, stop);
  if (stop.stop_requested()) return false;
  if (head && head->status >= 200 && head->status < 300) return journal_->delivery_done(delivery.id).has_value();
  const milliseconds backoff = std::min(kLongestBackoff, options_.first_backoff * (std::int64_t{1} << std::min(delivery.attempts, 20)));
  return journal_->delivery_failed(delivery.id, time_now() + backoff, delivery.attempts + 1 >= options_.max_attempts).has_value();
}

}  // namespace fixpoint::agent
