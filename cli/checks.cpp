#include "cli/checks.h"

#include <charconv>
#include <iomanip>
#include <optional>
#include <sstream>

#include "cli/model_options.h"

namespace fixpoint::cli {
namespace {

/// Thirty years: more than anybody waits for, and its nanoseconds fit into 64 bits.
constexpr double kMostSeconds = 1e9;

/// The whole text as a number; nothing for anything else.
template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

std::string shown(double number) {
  std::ostringstream out;
  out << std::setprecision(12) << number;
  return out.str();
}

/// `holds` says whether a number will do; NaN never does where it is written with comparisons.
template <class Holds>
CLI::Validator number_check(const std::string& range, Holds holds) {
  return {[range, holds](std::string& text) {
            const auto value = parsed<double>(text);
            return value && holds(*value) ? std::string() : "'" + text + "' is no number in " + range;
          },
          "NUMBER in " + range};
}

}  // namespace

CLI::Validator number_between(double low, double high) {
  return number_check("[" + shown(low) + ", " + shown(high) + "]", [=](double value) { return value >= low && value <= high; });
}

CLI::Validator number_above(double low, double high) {
  return number_check("(" + shown(low) + ", " + shown(high) + "]", [=](double value) { return value > low && value <= high; });
}

CLI::Validator positive_seconds() { return number_above(0, kMostSeconds).description("SECONDS"); }

CLI::Validator seconds_or_zero() { return number_between(0, kMostSeconds).description("SECONDS"); }

CLI::Validator positive_count(std::int64_t most) {
  return {[most](std::string& text) {
            const auto value = parsed<std::int64_t>(text);
            if (!value || *value < 1 || *value > most) return "'" + text + "' is no whole number from 1 to " + std::to_string(most);
            text = std::to_string(*value);  // CLI11 would read leading zeros as octal
            return std::string();
          },
          "COUNT"};
}

CLI::Validator seed_number() {
  return {[](std::string& text) {
            const auto value = parsed<std::uint64_t>(text);
            if (!value) return "'" + text + "' is no whole number from 0 to 18446744073709551615";
            text = std::to_string(*value);  // CLI11 would read leading zeros as octal
            return std::string();
          },
          "SEED"};
}

CLI::Validator zero_or_between(std::int64_t low, std::int64_t high) {
  const std::string range = "0, or from " + std::to_string(low) + " to " + std::to_string(high);
  return {[=](std::string& text) {
            const auto value = parsed<std::int64_t>(text);
            return value && (*value == 0 || (*value >= low && *value <= high)) ? std::string() : "'" + text + "' is not " + range;
          },
          range};
}

CLI::Validator byte_size() {
  return {[](std::string& text) {
            return parse_bytes(text) ? std::string() : "'" + text + "' is no size such as 4G or 512M";
          },
          "BYTES"};
}

CLI::Validator kv_type_name() {
  std::string names;
  for (const auto type : kernels::kKvTypes) names += (names.empty() ? "" : ",") + std::string(to_string(type));
  return {[names](std::string& text) {
            return kernels::parse_kv_type(text) ? std::string() : "'" + text + "' is none of " + names;
          },
          names};
}

CLI::Validator text_up_to(std::size_t most) {
  return {[most](std::string& text) {
            return !text.empty() && text.size() <= most ? std::string() : "must be 1 to " + std::to_string(most) + " bytes long";
          },
          "TEXT"};
}

}  // namespace fixpoint::cli
