#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "server/agent_record.h"
#include "server/api.h"
#include "tests/server/service.h"

namespace fixpoint::server {
namespace {

using nlohmann::json;

TEST(StateTest, MetricsAreInPrometheusFormAndCountWhatHappened) {
  Service service;
  service.start();
  EXPECT_EQ(service.post("/v1/completions", R"({"prompt":"a","max_tokens":4,"ignore_eos":true})").status, 200);
  EXPECT_EQ(service.post("/v1/completions", R"({"prompt":"a","max_tokens":4,"ignore_eos":true,"stream":true})").status, 200);
  const Reply reply = service.get("/metrics");
  EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const std::regex comment("# (HELP|TYPE) fixpoint_[a-z0-9_]+ .+"), sample(R"(fixpoint_[a-z0-9_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+0-9.eInfNa]+)");
  std::set<std::string> types;
  std::istringstream lines(reply.body);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, comment) || std::regex_match(line, sample)) << line;
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(types.insert(line).second) << line;
    }
  }
  for (const char* text : {"fixpoint_request_success_total{finished_reason=\"length\"} 2\n", "fixpoint_generation_tokens_total{model_name=\"tiny\"} 8\n",
                           "fixpoint_time_to_first_token_seconds_count 2\n", "fixpoint_e2e_request_latency_seconds_count 2\n", "fixpoint_num_requests_running{model_name=\"tiny\"} 0\n",
                           "fixpoint_http_requests_total{route=\"/v1/completions\",status=\"200\"} 2\n"}) {
    EXPECT_NE(reply.body.find(text), std::string::npos) << text << "\n" << reply.body;
  }
}

TEST(StateTest, AgentsEventsAreCountedAndCharged) {
  Service service;
  const Principal who{.token_id = "a", .limits = {.tokens_per_minute = 10}};
  const TraceContext trace = new_trace();
  const auto note = [&](agent::Event event) { record(service.services, who, trace, {.session = "s", .seq = 1, .event = std::move(event)}); };
  EXPECT_TRUE(service.admission.begin(who).has_value());
  note(agent::SessionStarted{});
  note(agent::RoundStarted{});
  note(agent::Generated{.usage = {.completion_tokens = 11}});
  note(agent::CheckStarted{});
  note(agent::Checked{.judgement = {.status = agent::CheckStatus::wrong_answer}});
  note(agent::Climbed{.kind = agent::RungKind::person});
  note(agent::Ended{.outcome = agent::Outcome::budget_exhausted});
  EXPECT_EQ(service.admission.begin(who).error().limit, "tokens_per_minute");
  const std::string text = service.metrics.text();
  for (const char* line : {"fixpoint_agent_sessions_total 1\n", "fixpoint_agent_rounds_total{purpose=\"draft\",writer=\"model\"} 1\n",
                           "fixpoint_agent_verdicts_total{status=\"wrong_answer\"} 1\n", "fixpoint_sandbox_launches_total 1\n",
                           "fixpoint_agent_escalations_total{rung=\"person\"} 1\n", "fixpoint_agent_budgets_exhausted_total 1\n",
                           "fixpoint_agent_turns_total{outcome=\"budget_exhausted\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(StateTest, EachLogLineIsAnObjectAndTracesGoThrough) {
  Service service;
  service.start();
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(service.post("/v1/completions", R"({"prompt":"a","max_tokens":1})", {{"traceparent", parent}}).status, 200);
  EXPECT_NE(service.get("/health", {{"X", "a\"b\\c"}}).header("x-request-id"), "");
  service.stop();
  std::istringstream lines(service.log_text());
  std::set<std::string> events;
  int traced = 0;
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line);
    EXPECT_TRUE(entry.contains("time"));
    events.insert(entry["event"]);
    traced += entry.value("trace", "") == "4bf92f3577b34da6a3ce929d0e0e4736" ? 1 : 0;
  }
  EXPECT_TRUE(events.contains("http_request") && events.contains("completion"));
  EXPECT_EQ(traced, 2);
}

/// What docs/openapi.json promises of a value: types, required members, enums, references.
void expect_conforms(const json& document, json schema, const json& value, const std::string& where) {
  if (schema.contains("$ref")) schema = document.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
  if (schema.contains("type")) {
    const json types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
    bool fits = false;
    for (const std::string type : types) {
      fits = fits || (type == "object" && value.is_object()) || (type == "array" && value.is_array()) || (type == "string" && value.is_string()) ||
             (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) || (type == "boolean" && value.is_boolean()) ||
             (type == "null" && value.is_null());
    }
    EXPECT_TRUE(fits) << where << " should be " << types << ", is " << value;
    if (!fits) return;
  }
  if (schema.contains("enum")) {
    EXPECT_NE(std::find(schema["enum"].begin(), schema["enum"].end(), value), schema["enum"].end()) << where;
  }
  if (value.is_object()) {
    for (const std::string name : schema.value("required", json::array())) EXPECT_TRUE(value.contains(name)) << where << "." << name;
    for (const auto& [name, member] : value.items()) {
      if (schema.value("properties", json::object()).contains(name)) {
        expect_conforms(document, schema["properties"][name], member, where + "." + name);
      } else {
        EXPECT_NE(schema.value("additionalProperties", json(true)), json(false)) << where << "." << name << " is not described";
      }
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) expect_conforms(document, schema["items"], value[i], where + "[" + std::to_string(i) + "]");
  }
}

json read_openapi() {
  std::ifstream in(FIXPOINT_SOURCE_DIR "/docs/openapi.json");
  return json::parse(in);
}

TEST(OpenApiTest, TheDocumentAndTheServerHaveTheSameRoutes) {
  const json document = read_openapi();
  std::set<std::string> described, served;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      std::string upper = method;
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      described.insert(upper + " " + path);
      const std::string wanted = operation["x-role"];
      const Route* route = find_route(upper, path).route;
      ASSERT_NE(route, nullptr) << path;
      const char* names[] = {"none", "use", "review", "operate"};
      EXPECT_EQ(wanted, names[static_cast<std::size_t>(route->right)]) << path;
    }
  }
  for (const Route& route : routes()) served.insert(std::string(route.method) + " " + std::string(route.pattern));
  EXPECT_EQ(described, served);
}

TEST(OpenApiTest, AnswersAreAsDescribed) {
  const json document = read_openapi();
  Service service;
  service.start();
  struct Case {
    std::string method, path, route, body;
    int status;
  };
  const std::vector<Case> cases{
      {"GET", "/health", "/health", "", 200},
      {"GET", "/ready", "/ready", "", 200},
      {"GET", "/v1/models", "/v1/models", "", 200},
      {"GET", "/v1/models/tiny", "/v1/models/{id}", "", 200},
      {"GET", "/v1/models/x", "/v1/models/{id}", "", 404},
      {"POST", "/tokenize", "/tokenize", R"({"prompt":"a"})", 200},
      {"POST", "/tokenize", "/tokenize", "{}", 400},
      {"POST", "/detokenize", "/detokenize", R"({"tokens":[1]})", 200},
      {"POST", "/v1/completions", "/v1/completions", R"({"prompt":"a","max_tokens":2,"logprobs":1})", 200},
      {"POST", "/v1/completions", "/v1/completions", "{", 400},
      {"POST", "/v1/chat/completions", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"logprobs":true,"top_logprobs":1})", 200},
      {"GET", "/v1/sessions", "/v1/sessions", "", 200},
      {"GET", "/v1/sessions/x", "/v1/sessions/{id}", "", 404},
      {"GET", "/v1/sessions/x/events", "/v1/sessions/{id}/events", "", 404},
      {"GET", "/v1/escalations", "/v1/escalations", "", 200},
      {"GET", "/v1/escalations/x", "/v1/escalations/{id}", "", 404},
      {"POST", "/v1/escalations/x/claim", "/v1/escalations/{id}/claim", "", 404},
  };
  HttpClient client(service.address());
  for (const Case& it : cases) {
    const Reply reply = client.request(it.method, it.path, it.body);
    EXPECT_EQ(reply.status, it.status) << it.path << " " << reply.body;
    std::string method = it.method == "GET" ? "get" : "post";
    const json& responses = document["paths"][it.route][method]["responses"];
    const std::string status = std::to_string(it.status);
    const json& described = responses.contains(status) ? responses[status] : responses["default"];
    expect_conforms(document, described["content"]["application/json"]["schema"], json::parse(reply.body), it.path);
  }
}

}  // namespace
}  // namespace fixpoint::server
