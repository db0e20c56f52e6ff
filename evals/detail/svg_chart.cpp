#include "evals/detail/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fixpoint::evals::detail {
namespace {

constexpr double kWidth = 480;  // about as wide as it is shown, so that its texts are as large as the page's
constexpr double kHeight = 240;
constexpr double kLeft = 52;
constexpr double kRight = 16;
constexpr double kTop = 12;
constexpr double kBottom = 44;

std::string number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  return buffer;
}

/// 1, 2 or 5 times a power of ten, at least `value`.
double round_up(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value) return factor * power;
  }
  return 10 * power;
}

std::string amount(double value) {
  char buffer[32];
  if (value >= 1e6) {
    std::snprintf(buffer, sizeof buffer, "%gM", value / 1e6);
  } else if (value >= 1e4) {
    std::snprintf(buffer, sizeof buffer, "%gk", value / 1e3);
  } else {
    std::snprintf(buffer, sizeof buffer, "%g", value);
  }
  return buffer;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, std::string_view style = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + std::string(anchor) + "\"" +
         (style.empty() ? "" : " class=\"" + std::string(style) + "\"") + ">" + escape_html(text) + "</text>";
}

struct Scale {
  double x_step = 1;
  double x_max = 1;
  double y_max = 1;
  [[nodiscard]] double x(double value) const { return kLeft + (kWidth - kLeft - kRight) * value / x_max; }
  [[nodiscard]] double y(double value) const { return kTop + (kHeight - kTop - kBottom) * (1 - value / y_max); }
};

Scale scale_of(const LineChart& chart) {
  Scale scale;
  double x_max = 0;
  double y_max = 0;
  for (const Series& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      x_max = std::max(x_max, x);
      y_max = std::max(y_max, y);
    }
  }
  scale.x_step = round_up(std::max(x_max, 1.0) / 6);
  scale.x_max = scale.x_step * std::ceil(std::max(x_max, 1.0) / scale.x_step);
  // Of shares no more than is needed, in four steps of 5 %, 10 %…
  scale.y_max = chart.percent ? std::clamp(std::ceil(y_max * 5 - 1e-9) / 5, 0.2, 1.0) : round_up(y_max);
  return scale;
}

std::string grid(const LineChart& chart, const Scale& scale) {
  std::string out;
  for (int i = 0; i <= 4; ++i) {
    const double value = scale.y_max * i / 4;
    out += "<line class=\"grid\" x1=\"" + number(kLeft) + "\" x2=\"" + number(kWidth - kRight) + "\" y1=\"" + number(scale.y(value)) + "\" y2=\"" +
           number(scale.y(value)) + "\"/>";
    out += text_at(kLeft - 8, scale.y(value) + 4, "end", chart.percent ? amount(value * 100) + " %" : amount(value));
  }
  for (double value = 0; value <= scale.x_max * 1.0001; value += scale.x_step) out += text_at(scale.x(value), kHeight - kBottom + 16, "middle", amount(value));
  return out + text_at((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", chart.x_label, "label");
}

std::string path_of(const Series& series, const Scale& scale, std::size_t index) {
  std::string path;
  std::string dots;
  double last_y = 0;
  for (const auto& [x, y] : series.points) {
    if (path.empty()) {
      path = "M" + number(scale.x(x)) + " " + number(scale.y(series.steps ? 0 : y));
    } else if (series.steps) {
      path += "L" + number(scale.x(x)) + " " + number(scale.y(last_y));
    }
    path += "L" + number(scale.x(x)) + " " + number(scale.y(y));
    last_y = y;
    if (series.points.size() <= 12) {
      dots += "<circle class=\"dot-" + std::to_string(index) + "\" cx=\"" + number(scale.x(x)) + "\" cy=\"" + number(scale.y(y)) + "\" r=\"3\"/>";
    }
  }
  if (series.steps && !series.points.empty()) path += "L" + number(scale.x(scale.x_max)) + " " + number(scale.y(last_y));
  return "<path class=\"line-" + std::to_string(index) + "\" d=\"" + path + "\"/>" + dots;
}

/// Each series' line as it is drawn, and its name.
std::string legend(const std::vector<Series>& all) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += "<span><svg viewBox=\"0 0 28 4\" aria-hidden=\"true\"><path class=\"line-" + std::to_string(i + 1) + "\" d=\"M0 2L28 2\"/></svg>" + escape_html(all[i].name) + "</span> ";
  }
  return out + "</p>";
}

/// About as wide as the text is shown, with a margin.
double width_of(std::string_view text) { return 7.5 * static_cast<double>(text.size()) + 12; }

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\0': out += "\xEF\xBF\xBD"; break;
      default: out += c;
    }
  }
  return out;
}

std::string line_chart(const LineChart& chart) {
  const Scale scale = scale_of(chart);
  std::string out = "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) + "\" role=\"img\">" + grid(chart, scale);
  for (std::size_t i = 0; i < chart.series.size(); ++i) out += path_of(chart.series[i], scale, i + 1);
  out += "</svg>";
  if (chart.series.size() < 2 && (chart.series.empty() || chart.series.front().name.empty())) return out;
  return out + legend(chart.series);
}

std::string bar_chart(const std::vector<Bar>& bars, double full) {
  constexpr double kRow = 26;
  double label_width = 0;
  double text_width = 0;
  for (const Bar& bar : bars) {
    full = std::max(full, bar.value);
    label_width = std::max(label_width, width_of(bar.label));
    text_width = std::max(text_width, width_of(bar.text));
  }
  if (full <= 0) full = 1;
  const double height = kRow * static_cast<double>(bars.size()) + 4;
  std::string out = "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(height) + "\" role=\"img\">";
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double y = kRow * static_cast<double>(i) + 4;
    const double width = std::max(kWidth - label_width - text_width, 60.0) * bars[i].value / full;
    out += text_at(label_width - 10, y + 14, "end", bars[i].label);
    out += "<rect class=\"bar-" + std::to_string(bars[i].series) + "\" x=\"" + number(label_width) + "\" y=\"" + number(y) + "\" width=\"" +
           number(std::max(width, 1.0)) + "\" height=\"18\" rx=\"2\"/>";
    out += text_at(label_width + width + 8, y + 14, "start", bars[i].text);
  }
  return out + "</svg>";
}

}  // namespace fixpoint::evals::detail
