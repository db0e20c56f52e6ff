#include "server/http.h"

#include <algorithm>

#include "server/event_log.h"

namespace fixpoint::server {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (plus_is_space && c == '+') {
      c = ' ';
    }
    if (c == '\0') return std::nullopt;
    out += c;
  }
  return out;
}

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string_view HttpRequest::header(std::string_view lower_case_name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& it) { return it.first == lower_case_name; });
  return found == headers.end() ? std::string_view() : found->second;
}

std::optional<std::string_view> HttpRequest::query_value(std::string_view name) const {
  const auto found = std::find_if(query.begin(), query.end(), [&](const auto& it) { return it.first == name; });
  return found == query.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

std::string ApiError::body() const {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? std::string("null") : json_string(text); };
  return R"({"error":{"message":)" + json_string(message) + R"(,"type":)" + json_string(error_type(status)) + R"(,"param":)" +
         text_or_null(param) + R"(,"code":)" + text_or_null(code) + "}}";
}

HttpResponse ApiError::response() const {
  HttpResponse out{.status = status, .body = body()};
  if (retry_after) out.headers.emplace_back("Retry-After", std::to_string(retry_after->count()));
  if (status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

std::optional<Target> parse_target(std::string_view text) {
  if (text.empty() || text.front() != '/') return std::nullopt;
  text = text.substr(0, text.find('#'));
  const std::size_t mark = text.find('?');
  auto path = decode(text.substr(0, mark), false);
  if (!path) return std::nullopt;
  Target out{.path = *std::move(path)};
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    auto name = decode(pair.substr(0, equals), true);
    auto value = decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) return std::nullopt;
    if (!name->empty()) out.query.emplace_back(*std::move(name), *std::move(value));
  }
  return out;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

}  // namespace fixpoint::server
