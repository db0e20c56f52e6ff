#include <fstream>

#include "tests/acp/acp_client.h"

// docs/protocol.md, message for message.
namespace fixpoint::server {
namespace {

struct Example {
  bool of_client = false;
  std::string text;
  int line = 0;
};

std::vector<Example> examples_of(const std::string& file) {
  std::vector<Example> examples;
  std::ifstream in(file);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```json ")) {
      inside = true;
      examples.push_back({line == "```json client", "", number});
    } else if (line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      examples.back().text += line + "\n";
    }
  }
  return examples;
}

/// Everything that the example says is so; the message may say more.
bool says(const Json& message, const Json& example) {
  if (example.is_string() && example.get<std::string>() == "…") return message.is_string();
  if (example.is_object()) {
    if (!message.is_object()) return false;
    for (const auto& [key, value] : example.items()) {
      if (!message.contains(key) || !says(message[key], value)) return false;
    }
    return true;
  }
  if (example.is_array()) {
    if (!message.is_array() || message.size() < example.size()) return false;
    for (std::size_t i = 0; i < example.size(); ++i) {
      if (!says(message[i], example[i])) return false;
    }
    return true;
  }
  return message == example;
}

std::string with_session(std::string text, const std::string& session) {
  for (std::size_t at = text.find("SESSION"); at != std::string::npos; at = text.find("SESSION")) text.replace(at, 7, session);
  return text;
}

TEST(ProtocolPageTest, EveryExampleIsSentAndAnsweredAsItSays) {
  const std::vector<Example> examples = examples_of(FIXPOINT_PROTOCOL_PAGE);
  ASSERT_GT(examples.size(), 20U);
  Service service;
  Client client(service);
  std::string session;
  std::size_t seen = 0;
  for (const Example& example : examples) {
    SCOPED_TRACE("docs/protocol.md:" + std::to_string(example.line));
    const Json json = Json::parse(with_session(example.text, session), nullptr, false);
    ASSERT_TRUE(json.is_object());
    if (example.of_client) {
      seen = client.frames.size();
      client.send(json);
      continue;
    }
    client.until([&] { return std::any_of(client.frames.begin() + static_cast<std::ptrdiff_t>(seen), client.frames.end(),
                                          [&](const Json& frame) { return says(frame, json); }); },
                 example.text.c_str());
    for (const Json& frame : client.frames) {
      if (frame.contains("result") && frame["result"].contains("sessionId")) session = frame["result"]["sessionId"];
    }
  }
}

}  // namespace
}  // namespace fixpoint::server
