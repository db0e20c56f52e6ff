#include "server/trace.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace fixpoint::server {
namespace {

template <std::size_t bytes>
std::string random_hex() {
  std::array<unsigned char, bytes> raw{};
  if (RAND_bytes(raw.data(), static_cast<int>(raw.size())) != 1) throw std::runtime_error("the system has no randomness");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : raw) {
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  // version "-" trace id "-" parent id "-" flags; later versions may add fields after another "-".
  if (text.size() < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16), flags = text.substr(53, 2);
  if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(flags) || is_zero(trace) || is_zero(span)) return std::nullopt;
  if (version == "ff" || (version == "00" && text.size() != 55) || (text.size() > 55 && text[55] != '-')) return std::nullopt;
  const int low = flags[1] <= '9' ? flags[1] - '0' : flags[1] - 'a' + 10;
  return TraceContext{.trace_id = std::string(trace), .span_id = std::string(span), .sampled = (low & 1) != 0};
}

std::string to_traceparent(const TraceContext& context) {
  return "00-" + context.trace_id + "-" + context.span_id + (context.sampled ? "-01" : "-00");
}

TraceContext new_trace() { return {.trace_id = random_hex<16>(), .span_id = random_hex<8>()}; }

TraceContext child_of(const TraceContext& parent) {
  return {.trace_id = parent.trace_id, .span_id = random_hex<8>(), .sampled = parent.sampled};
}

}  // namespace fixpoint::server
