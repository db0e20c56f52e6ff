#include "server/any_stream.h"

namespace fixpoint::server {

static_assert(boost::beast::is_async_stream<AnyStream>::value);

}  // namespace fixpoint::server
