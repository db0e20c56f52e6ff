#include "server/metrics.h"

#include <algorithm>
#include <charconv>

namespace fixpoint::server {
namespace {

constexpr std::string_view kPrefix = "fixpoint_";

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return error == std::errc() ? std::string(text, end) : "NaN";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out;
}

std::string labels_text(const Metrics::Labels& labels, std::string_view le = {}) {
  std::string out;
  for (const auto& [name, value] : labels) out += (out.empty() ? "" : ",") + name + "=\"" + escaped(value) + "\"";
  if (!le.empty()) out += std::string(out.empty() ? "" : ",") + "le=\"" + std::string(le) + "\"";
  return out.empty() ? out : "{" + out + "}";
}

void head(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out.append("# HELP ").append(kPrefix).append(name).append(" ").append(help).append("\n# TYPE ");
  out.append(kPrefix).append(name).append(" ").append(type).append("\n");
}

void line(std::string& out, std::string_view name, std::string_view suffix, const std::string& labels, const std::string& value) {
  out.append(kPrefix).append(name).append(suffix).append(labels).append(" ").append(value).append("\n");
}

void histogram_text(std::string& out, std::string_view name, const Metrics::Labels& labels, const Histogram& histogram) {
  const Histogram::Snapshot snapshot = histogram.snapshot();
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < snapshot.counts.size(); ++i) {
    below += snapshot.counts[i];
    const std::string le = i < histogram.bounds().size() ? number(histogram.bounds()[i]) : "+Inf";
    line(out, name, "_bucket", labels_text(labels, le), std::to_string(below));
  }
  line(out, name, "_sum", labels_text(labels), number(snapshot.sum));
  line(out, name, "_count", labels_text(labels), std::to_string(below));
}

std::vector<double> powers_of_two(double first, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i, first *= 2) out.push_back(first);
  return out;
}

}  // namespace

const std::vector<double> kLatencySeconds{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,  0.5,  1,    2,
                                          5,     10,    20,    40,   80,   160,  320, 640, 1280, 2560};
const std::vector<double> kEventSeconds{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 1, 10};
const std::vector<double> kTokenCounts = powers_of_two(1, 18);

void Histogram::observe(double value, std::uint64_t times) {
  const auto bucket = static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  const std::scoped_lock lock(mutex_);
  counts_[bucket] += times;
  sum_ += value * static_cast<double>(times);
}

Histogram::Snapshot Histogram::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return {.counts = counts_, .sum = sum_};
}

Metrics::Family& Metrics::family(std::string_view name, std::string_view help) {
  const auto found = families_.find(name);
  if (found != families_.end()) return found->second;
  Family& made = families_[std::string(name)];
  made.help = help;
  return made;
}

Counter& Metrics::counter(std::string_view name, std::string_view help, const Labels& labels) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Counter>& slot = family(name, help).counters[labels];
  if (!slot) slot = std::make_unique<Counter>();
  return *slot;
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, std::span<const double> bounds, const Labels& labels) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Histogram>& slot = family(name, help).histograms[labels];
  if (!slot) slot = std::make_unique<Histogram>(bounds);
  return *slot;
}

std::string Metrics::text(std::span<const Sample> more) const {
  std::string out;
  std::string_view last;
  for (const Sample& sample : more) {
    if (sample.name != last) head(out, sample.name, sample.help, sample.type);
    last = sample.name;
    line(out, sample.name, "", labels_text(sample.labels), number(sample.value));
  }
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, family] : families_) {
    head(out, name, family.help, family.histograms.empty() ? "counter" : "histogram");
    for (const auto& [labels, counter] : family.counters) line(out, name, "", labels_text(labels), std::to_string(counter->value()));
    for (const auto& [labels, histogram] : family.histograms) histogram_text(out, name, labels, *histogram);
  }
  return out;
}

}  // namespace fixpoint::server
