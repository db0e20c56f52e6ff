#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Charts as inline SVG. Colours come from the page's style sheet (classes line-1, bar-1…), so that they follow its
/// light and dark forms.
namespace fixpoint::evals::detail {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool steps = false;  // horizontal until the next point
};

struct LineChart {
  std::string x_label;
  std::vector<Series> series;
  bool percent = true;  // shares: the y axis ends at 20, 40, 60, 80 or 100 %
};
[[nodiscard]] std::string line_chart(const LineChart& chart);

struct Bar {
  std::string label;
  double value = 0;
  std::string text;   // what stands at its end
  int series = 1;
};
/// Horizontal bars, the longest as wide as `full` stands for (0: as the largest value).
[[nodiscard]] std::string bar_chart(const std::vector<Bar>& bars, double full = 0);

/// Text for HTML: & < > " escaped.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace fixpoint::evals::detail
