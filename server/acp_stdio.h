#pragma once

#include "server/acp_peer.h"

namespace fixpoint::server {

/// The agent's side of ACP over a pair of pipes: one JSON-RPC message a line. Returns when the input ends (true) or the
/// output can't be written any more (false). What is at work then stays in the journal.
bool run_acp_stdio(SessionHub& hub, const Principal& who, const AcpPeer::Options& options, int input, int output);

}  // namespace fixpoint::server
