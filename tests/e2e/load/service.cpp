#include "tests/e2e/load/service.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace fixpoint::load {
namespace {

namespace fs = std::filesystem;
namespace http = boost::beast::http;

void write_script(const fs::path& file) {
  nlohmann::json answers = nlohmann::json::array();
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = "Answer " + std::to_string(i) + ": there is no program yet.";  // nothing for the sandbox
    answers.push_back({{"text", text}, {"delay_ms", 200 + i * 37 % 400}});
  }
  std::ofstream(file) << answers;
}

/// Of a process that may be gone before it is read: then less.
std::string read_file(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The fields of /proc/PID/stat after the name: 0 is the state, 1 the parent.
std::vector<std::string> stat_fields(const fs::path& process) {
  const std::string text = read_file(process / "stat");
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest(text.substr(end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

}  // namespace

Service::Service(const std::string& program, const std::string& model, std::vector<std::string> flags) {
  std::string name = (fs::temp_directory_path() / "fixpoint-load-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = name;
  std::vector<std::string> command{program, "serve", "--listen", "127.0.0.1:0", "--journal", folder_ / "journal.db", "--log", folder_ / "log"};
  if (model == "script") {
    write_script(folder_ / "answers.json");
    command.insert(command.end(), {"--script", folder_ / "answers.json"});
  } else {
    command.insert(command.end(), {"-m", model});
  }
  command.insert(command.end(), flags.begin(), flags.end());
  process_ = cuts::Process(command, true);
  port_ = static_cast<std::uint16_t>(std::stoi(process_.wait_for("listening on http://127.0.0.1:")));
}

Service::~Service() {
  process_.kill();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string Service::metrics() const {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::address_v4::loopback(), port_});
  http::request<http::empty_body> request(http::verb::get, "/metrics", 11);
  request.set(http::field::host, "127.0.0.1");
  request.set(http::field::connection, "close");
  http::write(socket, request);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  http::read(socket, buffer, response);
  return response.body();
}

std::int64_t Service::resident_bytes() const {
  std::istringstream fields(read_file("/proc/" + std::to_string(process_.id()) + "/statm"));
  std::int64_t pages = 0;
  fields >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

double Service::cpu_seconds() const {
  const auto fields = stat_fields("/proc/" + std::to_string(process_.id()));
  return fields.size() < 13 ? 0 : (std::stod(fields[11]) + std::stod(fields[12])) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int Service::processes() const {
  std::map<int, int> parents;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto fields = stat_fields(entry.path());
    if (fields.size() > 1 && fields[0] != "Z") parents[std::stoi(name)] = std::stoi(fields[1]);
  }
  int count = 0;
  for (const auto& [process, parent] : parents) {
    int at = parent;
    while (at > 1 && at != process_.id()) at = parents.contains(at) ? parents[at] : 0;
    count += at == process_.id() ? 1 : 0;
  }
  return count;
}

double value_of(const std::string& metrics, const std::string& name) {
  std::istringstream lines(metrics);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(name + " ") || line.starts_with(name + "{")) return std::stod(line.substr(line.rfind(' ')));
  }
  return 0;
}

Buckets buckets_of(const std::string& metrics, const std::string& name) {
  Buckets buckets;
  std::istringstream lines(metrics);
  std::string line;
  const std::string begin = name + "_bucket{le=\"";
  while (std::getline(lines, line)) {
    if (!line.starts_with(begin)) continue;
    buckets.bounds.push_back(std::strtod(line.c_str() + begin.size(), nullptr));  // "+Inf" too
    buckets.counts.push_back(std::stod(line.substr(line.rfind(' '))));
  }
  return buckets;
}

Buckets operator-(Buckets after, const Buckets& before) {
  for (std::size_t i = 0; i < std::min(after.counts.size(), before.counts.size()); ++i) after.counts[i] -= before.counts[i];
  return after;
}

double Buckets::quantile(double q) const {
  if (counts.empty() || counts.back() <= 0) return 0;
  const double wanted = q * counts.back();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < wanted) continue;
    const double low = i == 0 ? 0 : bounds[i - 1], below = i == 0 ? 0 : counts[i - 1];
    return low + (bounds[i] - low) * (wanted - below) / (counts[i] - below);
  }
  return bounds.back();
}

double Buckets::part_below(double bound) const {
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i] >= bound && counts.back() > 0) return counts[i] / counts.back();
  }
  return 0;
}

}  // namespace fixpoint::load
