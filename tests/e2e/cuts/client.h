#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace fixpoint::cuts {

/// A client process: works through conversations of a few prompts each, over connections that are cut at random, and keeps
/// what it was told in `folder`/`name`.log, so that it goes on where it was when it is killed. Each conversation ends with a
/// comparison of what was taken in with a whole load, and becomes `folder`/`name`.N.done. Once the file `folder`/calm is
/// there, nothing is cut any more and the client ends with the conversation. The exit code: 1 where an update was lost or
/// came twice, or a prompt has not one end; what is wrong is on stderr.
int run_client(const std::filesystem::path& folder, const std::string& name, std::uint16_t port, unsigned seed);

/// The ids of all sessions that the server lists.
[[nodiscard]] std::set<std::string> list_sessions(std::uint16_t port);

}  // namespace fixpoint::cuts
