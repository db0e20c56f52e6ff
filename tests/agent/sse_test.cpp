#include "agent/detail/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace fixpoint::agent::detail {
namespace {

std::vector<std::string> events_of(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> events;
  const auto sink = [&events](std::string_view data) { events.emplace_back(data); };
  SseParser parser;
  for (std::size_t i = 0; i < bytes.size(); i += piece) EXPECT_TRUE(parser.push(bytes.substr(i, piece), sink));
  parser.finish(sink);
  return events;
}

TEST(SseTest, EventsAreTheSameHoweverTheBytesAreCut) {
  const std::string bytes = ": comment\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: lines\n\n\n\ndata: [DONE]\n\n";
  const std::vector<std::string> expected{"one", "two\nlines", "[DONE]"};
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(events_of(bytes, piece), expected) << piece;
}

TEST(SseTest, AnEventWithoutItsEmptyLineCountsAtTheEnd) { EXPECT_EQ(events_of("data: last", 3), std::vector<std::string>{"last"}); }

TEST(SseTest, AnEndlessLineIsRefused) {
  SseParser parser;
  const std::string block(1 << 20, 'x');
  bool fits = true;
  for (int i = 0; i < 5 && fits; ++i) fits = parser.push(block, [](std::string_view) {});
  EXPECT_FALSE(fits);
}

}  // namespace
}  // namespace fixpoint::agent::detail
