#include "sandbox/detail/check/message.h"

#include <gtest/gtest.h>

namespace fixpoint::sandbox::detail {
namespace {

TEST(MessageReaderTest, CutsMessagesHoweverTheirBytesArrive) {
  const std::string bytes = message_bytes(Value::of(1)) + message_bytes(Value::of("two"));
  for (std::size_t chunk = 1; chunk <= bytes.size(); ++chunk) {
    MessageReader reader(100);
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < bytes.size(); at += chunk) {
      reader.feed(std::string_view(bytes).substr(at, chunk));
      while (true) {
        auto next = reader.next();
        ASSERT_TRUE(next);
        if (!*next) break;
        seen.push_back(to_text(**next));
      }
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"1", "'two'"})) << chunk;
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(MessageReaderTest, RefusesALengthBeyondTheBoundBeforeItsBytes) {
  MessageReader reader(100);
  reader.feed(std::string("\xff\xff\xff\x7f", 4));
  EXPECT_FALSE(reader.next());
}

TEST(MessageReaderTest, NothingComesAfterAnError) {
  MessageReader reader(100);
  reader.feed(std::string("\x01\0\0\0x", 5));
  reader.feed(message_bytes(Value::of(1)));
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
}

TEST(AnswerTest, OnlyTheTwoKindsAreAnswers) {
  const Value nonce = Value::bytes_of("n");
  EXPECT_TRUE(parse_answer(Value::tuple_of({Value::of("value"), nonce, Value::of(1), Value{}})));
  EXPECT_TRUE(parse_answer(Value::tuple_of({Value::of("raise"), nonce, Value::of(1), Value{}}))->raised);
  EXPECT_FALSE(parse_answer(Value::tuple_of({Value::of("passed"), nonce, Value::of(1), Value{}})));
  EXPECT_FALSE(parse_answer(Value::tuple_of({Value::of("value"), Value::of("n"), Value::of(1), Value{}})));
  EXPECT_FALSE(parse_answer(Value::tuple_of({Value::of("value"), nonce})));
  EXPECT_FALSE(parse_answer(Value::of(1)));
}

}  // namespace
}  // namespace fixpoint::sandbox::detail
