#pragma once

#include <boost/asio.hpp>

namespace fixpoint::server {

/// For awaited operations: errors are values, the first of the results.
inline constexpr auto kTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace fixpoint::server
