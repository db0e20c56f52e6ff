#include "server/trace.h"

#include <gtest/gtest.h>

namespace fixpoint::server {
namespace {

const std::string kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceTest, ATraceparentIsReadAndWritten) {
  const auto context = parse_traceparent(kParent);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_id, "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(to_traceparent(*context), kParent);
  const TraceContext child = child_of(*context);
  EXPECT_EQ(child.trace_id, context->trace_id);
  EXPECT_NE(child.span_id, context->span_id);
  EXPECT_TRUE(parse_traceparent(to_traceparent(new_trace())).has_value());
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->sampled);
}

TEST(TraceTest, WhatIsNoTraceparentIsNone) {
  for (const std::string& text : {std::string(), kParent.substr(1), kParent + "-x", "ff" + kParent.substr(2), "0G" + kParent.substr(2),
                                  std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
                                  std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
                                  std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01")}) {
    EXPECT_FALSE(parse_traceparent(text).has_value()) << text;
  }
  EXPECT_TRUE(parse_traceparent("01" + kParent.substr(2) + "-more").has_value());
}

}  // namespace
}  // namespace fixpoint::server
