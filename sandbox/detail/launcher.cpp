#include "sandbox/detail/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sandbox/detail/channel.h"

namespace fixpoint::sandbox::detail {

tl::expected<RunEnds, SetupError> start_run(BrokerProcess& broker, LaunchFrame frame,
                                            const std::optional<JudgeChannel>& judge, int executable) {
  std::optional<Pipe> input = make_pipe();
  std::optional<Pipe> output = make_pipe();
  std::optional<Pipe> errors = make_pipe();
  std::optional<SocketPair> report = make_socket_pair();
  if (!input || !output || !errors || !report) return tl::unexpected(SetupError{"make_pipes", std::strerror(errno)});
  std::vector<int> descriptors{input->read.get(), output->write.get(), errors->write.get(), report->second.get()};
  if (judge) {
    frame.flags |= LaunchFrame::judge;
    descriptors.push_back(judge->questions_fd);
    descriptors.push_back(judge->answers_fd);
  }
  if (executable >= 0) {
    frame.flags |= LaunchFrame::executable;
    descriptors.push_back(executable);
  }
  const auto sent = broker.send(Frame(std::move(frame)), descriptors);
  if (!sent) return tl::unexpected(SetupError{sent.error().step, sent.error().detail});
  return RunEnds{std::move(report->first), std::move(input->write), std::move(output->read), std::move(errors->read)};
}

RunResult launch(BrokerProcess& broker, LaunchRequest request, std::stop_token stop) {
  RunResult result;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto ends = start_run(broker, request.frame, request.judge, request.executable);
    if (!ends) {
      result.outcome = ends.error();
      return result;
    }
    result = watch_run(std::move(*ends), request.monitor, stop);
    if (!result.unheard) break;
  }
  return result;
}

std::string read_artefact(int file, std::uint64_t limit) {
  std::string content;
  std::array<char, 65536> buffer{};
  while (content.size() < limit) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), limit - content.size());
    const ssize_t got = ::pread(file, buffer.data(), wanted, static_cast<off_t>(content.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return content;
}

}  // namespace fixpoint::sandbox::detail
