#include <gtest/gtest.h>

#include <random>

#include "server/acp.h"
#include "server/acp_bridge_book.h"
#include "server/jsonrpc.h"
#include "server/outbox.h"
#include "server/prompt_task.h"

namespace fixpoint::server {
namespace {

using jsonrpc::Json;

int error_code(std::string_view text, jsonrpc::Limits limits = {}) {
  const auto message = jsonrpc::parse(text, limits);
  return message ? 0 : message.error().error.code;
}

TEST(JsonRpcTest, ReadsRequestsNotificationsAndResponses) {
  const auto request = jsonrpc::parse(R"({"jsonrpc":"2.0","id":7,"method":"a","params":{"b":1}})");
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<jsonrpc::Request>(*request).id, jsonrpc::Id(std::int64_t{7}));
  EXPECT_EQ(std::get<jsonrpc::Request>(*request).params["b"], 1);
  const auto notification = jsonrpc::parse(R"({"jsonrpc":"2.0","method":"a"})");
  ASSERT_TRUE(notification);
  EXPECT_FALSE(std::get<jsonrpc::Request>(*notification).id);
  const auto response = jsonrpc::parse(R"({"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no"}})");
  ASSERT_TRUE(response);
  EXPECT_EQ(std::get<jsonrpc::Response>(*response).result.error().code, -32601);
}

TEST(JsonRpcTest, RefusesWhatIsNoMessage) {
  EXPECT_EQ(error_code(""), jsonrpc::kParseError);
  EXPECT_EQ(error_code("{"), jsonrpc::kParseError);
  EXPECT_EQ(error_code("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"), jsonrpc::kParseError);
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":1e999,"method":"a"})"), jsonrpc::kParseError);
  EXPECT_EQ(error_code("[]"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"([{"jsonrpc":"2.0","id":1,"method":"a"}])"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code("7"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"id":1,"method":"a"})"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"jsonrpc":"1.0","id":1,"method":"a"})"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":1.5,"method":"a"})"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":{},"method":"a"})"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":1,"method":7})"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":1})"), jsonrpc::kInvalidRequest);
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":1,"method":"a","params":[1]})"), jsonrpc::kInvalidParams);
}

TEST(JsonRpcTest, NamesTheIdOfWhatItRefuses) {
  const auto message = jsonrpc::parse(R"({"jsonrpc":"2.0","id":"q","method":"a","params":7})");
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().id, jsonrpc::Id(std::string("q")));
  const auto response = jsonrpc::parse(R"({"jsonrpc":"2.0","id":"q","result":1,"error":{"code":1}})");
  ASSERT_FALSE(response);
  EXPECT_FALSE(response.error().answer) << "a response is never answered";
}

TEST(JsonRpcTest, BoundsBytesAndDepth) {
  EXPECT_EQ(error_code(R"({"jsonrpc":"2.0","id":1,"method":"a"})", {.bytes = 10}), jsonrpc::kInvalidRequest);
  const std::string deep = R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}}";
  EXPECT_EQ(error_code(deep), jsonrpc::kInvalidRequest);
  const std::string quoted = R"({"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\"[[[[[[[[[[[[[["}})";
  EXPECT_EQ(error_code(quoted, {.depth = 2}), 0) << "brackets within strings do not nest";
}

TEST(JsonRpcTest, ReplacesBytesThatAreNoUtf8) { EXPECT_EQ(jsonrpc::quoted("a\xff" "b"), "\"a\xef\xbf\xbd" "b\""); }

TEST(AcpParamsTest, NameTheFieldThatIsWrong) {
  EXPECT_EQ(acp::parse_initialize(Json::object()).error(), "protocolVersion: missing");
  EXPECT_EQ(acp::parse_initialize({{"protocolVersion", "1"}}).error(), "protocolVersion: not an integer within 0..65535");
  EXPECT_EQ(acp::parse_initialize({{"protocolVersion", 1}, {"clientCapabilities", {{"fs", {{"readTextFile", 1}}}}}}).error(),
            "clientCapabilities.fs.readTextFile: not true or false");
  EXPECT_EQ(acp::parse_new_session({{"cwd", "a/b"}, {"mcpServers", Json::array()}}).error(), "cwd: not an absolute path");
  EXPECT_EQ(acp::parse_new_session({{"cwd", "/a"}}).error(), "mcpServers: missing");
  EXPECT_EQ(acp::parse_new_session(nullptr).error(), ": not an object");
  EXPECT_EQ(acp::parse_prompt({{"sessionId", "s"}, {"prompt", Json::array({{{"type", "text"}}})}}).error(), "prompt[0].text: missing");
  EXPECT_EQ(acp::parse_prompt({{"sessionId", "s"}, {"prompt", Json::array({{{"type", "image"}}})}}).error(),
            "prompt[0].type: image is not among the prompt capabilities");
  EXPECT_EQ(acp::parse_prompt({{"sessionId", "s"}, {"prompt", Json::array({{{"type", "resource"}, {"resource", {{"uri", "u"}, {"blob", ""}}}}})}}).error(),
            "prompt[0].resource.blob: only text is accepted");
  EXPECT_EQ(acp::parse_prompt({{"sessionId", "s"}, {"prompt", Json::array({{{"type", "text"}, {"text", "x"}}})},
                               {"_meta", {{"fixpoint", {{"budget", {{"rounds", 11}}}}}}}}).error(),
            "_meta.fixpoint.budget.rounds: not an integer within 0..10");
  EXPECT_EQ(acp::parse_open_session({{"sessionId", "s"}, {"cwd", "/"}, {"_meta", {{"fixpoint", {{"lastSeq", -1}}}}}}).error(),
            "_meta.fixpoint.lastSeq: not an integer within 0..9007199254740992");
}

TEST(AcpParamsTest, PathsOfUris) {
  EXPECT_EQ(acp::path_of_uri("file:///a/b%20c.py"), "/a/b c.py");
  EXPECT_EQ(acp::path_of_uri("file://localhost/a.py#L1"), "/a.py");
  EXPECT_FALSE(acp::path_of_uri("https://example.org/a.py"));
  EXPECT_FALSE(acp::path_of_uri("file://host/a.py"));
  EXPECT_FALSE(acp::path_of_uri("file:///a%00b"));
}

const agent::Assertion& assertion(const PromptTask& made, std::size_t i) { return std::get<agent::Assertion>(made.task.visible.at(i).body); }

TEST(PromptTaskTest, ReadsTestsFromTheMessage) {
  const auto section = make_task({.message = "Write f.\n\n# Tests\n\nassert f(1) == 7\n"});
  ASSERT_TRUE(section) << section.error();
  EXPECT_EQ(section->task.statement, "Write f.");
  EXPECT_EQ(section->task.entry_point, "f");
  const auto block = make_task({.message = "Write f so that this holds:\n```python\nassert f(1) == 7\nassert f(2) == 8\n```\n"});
  ASSERT_TRUE(block) << block.error();
  ASSERT_EQ(block->task.visible.size(), 2U);
  EXPECT_EQ(assertion(*block, 1).code, "assert f(2) == 8");
  EXPECT_EQ(block->task.entry_point, "f");
}

TEST(PromptTaskTest, ReadsTestsFromAFileNextToTheSource) {
  const auto made = make_task({.message = "Repair it.",
                               .files = {{"/w/f.py", "def f(x):\n    return 6\n"}, {"/w/test_f.py", "assert f(1) == 7\n"}}});
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made->file, "/w/f.py");
  EXPECT_EQ(made->before, "def f(x):\n    return 6\n");
  ASSERT_EQ(made->task.visible.size(), 1U);
  ASSERT_EQ(made->task.context.size(), 1U);
  EXPECT_EQ(made->task.context[0].path, "f.py");
}

TEST(PromptTaskTest, AStubAloneIsATask) {
  const auto made = make_task({.files = {{"/w/f.py", "def f(x):\n    \"\"\"Give back seven.\n\n    >>> f(1)\n    7\n    \"\"\"\n"}}});
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made->task.entry_point, "f");
  EXPECT_EQ(made->task.visible.size(), 1U);
}

TEST(PromptTaskTest, AJsonMessageIsATask) {
  const auto made = make_task({.message = R"({"statement": "Write f.", "entry_point": "f", "tests": ["assert f(1) == 7"]})"});
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made->task.visible.size(), 1U);
  const auto wrong = make_task({.message = R"({"statement": 7})"});
  ASSERT_FALSE(wrong);
}

TEST(PromptTaskTest, TheLanguageFollowsTheFile) {
  const auto made = make_task({.message = "Repair it.", .files = {{"/w/f.cpp", "int f(int) { return 6; }\n"}}});
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made->task.language, "cpp");
  const auto said = make_task({.message = "Write f.", .language = "js"});
  ASSERT_TRUE(said);
  EXPECT_EQ(said->task.language, "javascript");
}

TEST(PromptTaskTest, KnowsWhereTestsLie) {
  EXPECT_TRUE(is_test_file("/w/test_f.py"));
  EXPECT_TRUE(is_test_file("/w/f.test.js"));
  EXPECT_FALSE(is_test_file("/w/contest.py"));
  EXPECT_EQ(test_paths("/w/f.py"),
            (std::vector<std::string>{"/w/test_f.py", "/w/f_test.py", "/w/tests/test_f.py", "/w/tests/f_test.py"}));
  EXPECT_TRUE(test_paths("/w/test_f.py").empty());
}

SharedUpdate piece(std::int64_t seq, const std::string& message, const std::string& text) {
  auto update = std::make_shared<Update>();
  update->seq = seq;
  update->kind = "agent_thought_chunk";
  update->message = message;
  update->text = text;
  return update;
}
SharedUpdate whole(std::int64_t seq, std::string body = "{}") {
  auto update = std::make_shared<Update>();
  update->seq = seq;
  update->body = std::move(body);
  return update;
}
Outbox::Numbered numbered(Outbox& outbox) { return std::get<Outbox::Numbered>(outbox.take().value()); }

TEST(OutboxTest, JoinsPiecesThatWaitAndSaysWhatTheyStandFor) {
  int woken = 0;
  Outbox outbox([&] { ++woken; });
  outbox.put("s", piece(1, "m", "a"));
  outbox.put("s", piece(2, "m", "b"));
  outbox.put("s", piece(3, "n", "c"));
  outbox.put("s", whole(4));
  outbox.put("s", piece(5, "n", "d"));
  EXPECT_EQ(woken, 1);
  const auto first = numbered(outbox);
  EXPECT_EQ(first.update->text, "ab");
  EXPECT_EQ(first.from, 1);
  EXPECT_EQ(first.update->seq, 2);
  EXPECT_EQ(numbered(outbox).update->text, "c");
  EXPECT_EQ(numbered(outbox).update->seq, 4);
  EXPECT_EQ(numbered(outbox).update->text, "d");
  EXPECT_FALSE(outbox.take());
  EXPECT_EQ(outbox.waiting_bytes(), 0U);
}

TEST(OutboxTest, JoiningLeavesOthersPiecesAlone) {
  Outbox a([] {}), b([] {});
  const SharedUpdate shared = piece(1, "m", "a");
  a.put("s", shared);
  b.put("s", shared);
  a.put("s", piece(2, "m", "b"));
  EXPECT_EQ(numbered(b).update->text, "a");
  EXPECT_EQ(numbered(a).update->text, "ab");
}

TEST(OutboxTest, AClientThatStaysBehindIsToldSo) {
  int woken = 0;
  Outbox outbox([&] { ++woken; }, {.max_bytes = 1'000});
  for (int i = 1; i <= 20; ++i) outbox.put("s", whole(i, std::string(100, 'x')));
  EXPECT_TRUE(outbox.behind());
  EXPECT_FALSE(outbox.take()) << "nothing half is sent";
  EXPECT_EQ(woken, 2) << "once for what came, once for being behind";
  EXPECT_EQ(outbox.waiting_bytes(), 0U);
}

TEST(OutboxTest, TextBeyondTheBoundAlsoMeansBehind) {
  Outbox outbox([] {}, {.max_bytes = 1'000, .max_joined = 100'000});
  for (int i = 1; i <= 50; ++i) outbox.put("s", piece(i, "m", std::string(100, 'x')));
  EXPECT_TRUE(outbox.behind());
}

TEST(OutboxTest, ReplayTakesThePlaceOfWhatWaits) {
  Outbox outbox([] {});
  outbox.put("s", whole(3));
  outbox.put("other", whole(1));
  outbox.replay("s", 1, {whole(2), whole(3)});
  outbox.put("s", whole(4));
  EXPECT_EQ(numbered(outbox).session, "other");
  for (const std::int64_t seq : {2, 3, 4}) {
    const auto it = numbered(outbox);
    EXPECT_EQ(it.update->seq, seq);
    EXPECT_EQ(it.from, seq);
  }
  EXPECT_FALSE(outbox.take());
}

TEST(OutboxTest, RandomUsesGiveEveryUpdateOnceInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Outbox outbox([] {}, {.max_bytes = 1 << 20, .max_joined = 12});
    std::string expected, got;
    std::int64_t covered = 0, seq = 0;
    const auto take = [&] {
      const auto entry = outbox.take();
      if (!entry) return false;
      const auto& it = std::get<Outbox::Numbered>(*entry);
      EXPECT_EQ(it.from, covered + 1);
      covered = it.update->seq;
      got += it.update->body.empty() ? it.update->text : it.update->body;
      return true;
    };
    std::vector<SharedUpdate> past;
    for (unsigned i = random() % 10; i > 0; --i) {
      ++seq;
      past.push_back(piece(seq, "m" + std::to_string(random() % 2), "p" + std::to_string(seq)));
    }
    for (const SharedUpdate& update : past) expected += update->text;
    outbox.replay("s", 0, past);
    for (int i = 0; i < 60; ++i) {
      if (random() % 3 == 0) {
        take();
      } else {
        ++seq;
        const std::string text = std::to_string(seq) + ",";
        outbox.put("s", random() % 4 == 0 ? whole(seq, text) : piece(seq, "m" + std::to_string(random() % 2), text));
        expected += text;
      }
    }
    while (take()) {}
    EXPECT_EQ(got, expected);
    EXPECT_EQ(covered, seq);
  }
}

std::string said(const std::optional<AcpBridgeBook::Line>& line) { return line ? line->text : "nothing"; }

TEST(AcpBridgeTest, ABrokenConnectionIsTakenUpWhereItWas) {
  AcpBridgeBook book;
  (void)book.from_editor(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}})");
  EXPECT_TRUE(book.from_server(R"({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}})"));
  (void)book.from_editor(R"({"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}})");
  EXPECT_TRUE(book.from_server(R"({"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}})"));
  const auto prompt = book.from_editor(R"({"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}})");
  ASSERT_TRUE(prompt);
  const std::string key = Json::parse(prompt->text)["params"]["_meta"]["fixpoint"]["promptKey"];
  EXPECT_TRUE(book.from_server(R"({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{},"_meta":{"fixpoint":{"seq":4}}}})"));
  const auto question = book.from_server(R"({"jsonrpc":"2.0","id":"fixpoint-1","method":"fs/read_text_file","params":{}})");
  ASSERT_TRUE(question);

  const auto withdrawn = book.disconnected();
  ASSERT_EQ(withdrawn.size(), 1U);
  EXPECT_EQ(Json::parse(withdrawn[0])["params"]["requestId"], Json::parse(*question)["id"]);
  const auto lines = book.reconnected();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(Json::parse(lines[0])["method"], "initialize");
  const Json resume = Json::parse(lines[1]);
  EXPECT_EQ(resume["params"]["_meta"]["fixpoint"]["lastSeq"], 4);
  EXPECT_EQ(resume["params"]["cwd"], "/w");
  EXPECT_EQ(Json::parse(lines[2])["params"]["_meta"]["fixpoint"]["promptKey"], key) << "it is the same prompt";
  EXPECT_FALSE(book.from_server(R"({"jsonrpc":"2.0","id":"bridge-1","result":{}})")) << "the editor never asked that";
  EXPECT_TRUE(book.from_server(R"({"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}})"));
  EXPECT_EQ(book.reconnected().size(), 2U) << "an answered prompt is not asked again";
}

TEST(AcpBridgeTest, AnswersGoOnlyToTheConnectionThatAsked) {
  AcpBridgeBook book;
  const Json first = Json::parse(*book.from_server(R"({"jsonrpc":"2.0","id":"fixpoint-1","method":"a"})"));
  (void)book.disconnected();
  const Json second = Json::parse(*book.from_server(R"({"jsonrpc":"2.0","id":"fixpoint-1","method":"a"})"));
  EXPECT_NE(first["id"], second["id"]);
  EXPECT_EQ(said(book.from_editor(Json{{"jsonrpc", "2.0"}, {"id", first["id"]}, {"result", 1}}.dump())), "nothing");
  EXPECT_EQ(Json::parse(said(book.from_editor(Json{{"jsonrpc", "2.0"}, {"id", second["id"]}, {"result", 1}}.dump())))["id"], "fixpoint-1");
}

}  // namespace
}  // namespace fixpoint::server
