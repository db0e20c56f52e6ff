#include "sandbox/detail/channel.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace fixpoint::sandbox::detail {
namespace {

TEST(ChannelTest, WhatAPeerSentIsReadAlsoWhereItClosedBeforeItHadReadAll) {
  auto sockets = make_socket_pair();
  ASSERT_TRUE(sockets);
  const std::byte unread[] = {std::byte{1}};
  const std::byte last[] = {std::byte{2}};
  ASSERT_TRUE(send_message(sockets->first.get(), unread, {}));
  ASSERT_TRUE(send_message(sockets->second.get(), last, {}));
  sockets->second.reset();
  const auto message = receive_message(sockets->first.get(), false);
  ASSERT_TRUE(message);
  ASSERT_EQ(message->bytes.size(), 1U);
  EXPECT_EQ(message->bytes[0], last[0]);
  errno = 1;
  EXPECT_FALSE(receive_message(sockets->first.get(), false));
  EXPECT_EQ(errno, 0);
}

}  // namespace
}  // namespace fixpoint::sandbox::detail
