// LiveCodeBench: question_content, question_id, starter_code, public_test_cases (JSON text), private_test_cases (JSON
// text, or base64 of zlib of a pickled JSON text), metadata (JSON text with func_name). SandboxFusion's edition instead
// has content, labels and test (base64 of zlib of a pickled {"input_output": JSON text}).
#include "evals/datasets/formats.h"
#include "evals/detail/pickle.h"

namespace fixpoint::evals::datasets {
namespace {

using sandbox::Value;

tl::expected<detail::PickledText, std::string> unpack(std::string_view text) {
  const auto compressed = detail::decode_base64(text);
  if (!compressed) return tl::unexpected(compressed.error());
  const auto pickled = detail::inflate_zlib(*compressed);
  if (!pickled) return tl::unexpected(pickled.error());
  return detail::read_pickled_text(*pickled);
}

/// The test cases of one field, added to `inputs`, `outputs`; `functional` is what all of them must be alike in.
tl::expected<void, DataError> add_cases(const detail::Row& row, std::string_view field, std::string_view json, Value& inputs, Value& outputs,
                                        std::optional<bool>& functional) {
  const auto cases = sandbox::parse_json_value(json);
  if (!cases) return tl::unexpected(row.error(field, "holds no JSON: " + cases.error().what));
  if (cases->kind != Value::Kind::list) return tl::unexpected(row.error(field, "holds " + std::string(detail::json_kind(*cases)) + ", not an array"));
  for (const Value& test : cases->items) {
    const Value* input = detail::member(test, "input");
    const Value* output = detail::member(test, "output");
    const Value* type = detail::member(test, "testtype");
    if (input == nullptr || output == nullptr || type == nullptr) return tl::unexpected(row.error(field, "a test lacks input, output or testtype"));
    if (type->text != "stdin" && type->text != "functional") return tl::unexpected(row.error(field, "a test has the unknown testtype '" + type->text + "'"));
    if (functional.value_or(type->text == "functional") != (type->text == "functional")) {
      return tl::unexpected(row.error(field, "mixes stdin and functional tests"));
    }
    functional = type->text == "functional";
    inputs.items.push_back(*input);
    outputs.items.push_back(*output);
  }
  return {};
}

tl::expected<std::string, DataError> private_cases(const detail::Row& row) {
  const auto text = row.text("private_test_cases");
  if (!text) return tl::unexpected(text.error());
  if (text->starts_with('[')) return *text;
  auto unpacked = unpack(*text);
  if (!unpacked) return tl::unexpected(row.error("private_test_cases", unpacked.error()));
  return std::move(unpacked->text);
}

tl::expected<std::string, DataError> function_name(const detail::Row& row) {
  const auto metadata = row.json_text("metadata");
  if (!metadata) return tl::unexpected(metadata.error());
  const Value* name = detail::member(*metadata, "func_name");
  if (name == nullptr || name->kind != Value::Kind::string) return tl::unexpected(row.error("metadata", "names no func_name for functional tests"));
  return name->text;
}

tl::expected<Task, DataError> livecodebench_task(const detail::Row& row) {
  const auto id = row.text("question_id");
  if (!id) return tl::unexpected(id.error());
  const auto question = row.text("question_content");
  if (!question) return tl::unexpected(question.error());
  const auto starter = row.text_or_empty("starter_code");
  if (!starter) return tl::unexpected(starter.error());
  const auto visible = row.text("public_test_cases");
  if (!visible) return tl::unexpected(visible.error());
  const auto hidden = private_cases(row);
  if (!hidden) return tl::unexpected(hidden.error());
  Value io;
  io.kind = Value::Kind::dict;
  io.items = {Value::of("inputs"), Value::list_of({}), Value::of("outputs"), Value::list_of({})};
  std::optional<bool> functional;
  if (auto added = add_cases(row, "public_test_cases", *visible, io.items[1], io.items[3], functional); !added) return tl::unexpected(added.error());
  const std::size_t visible_count = io.items[1].items.size();
  if (auto added = add_cases(row, "private_test_cases", *hidden, io.items[1], io.items[3], functional); !added) return tl::unexpected(added.error());
  if (functional.value_or(false)) {
    const auto name = function_name(row);
    if (!name) return tl::unexpected(name.error());
    io.items.push_back(Value::of("fn_name"));
    io.items.push_back(Value::of(*name));
  }
  Task task;
  auto tests = tests_of_input_output(io, task.entry_point);
  if (!tests) return tl::unexpected(row.error("public_test_cases", tests.error()));
  const auto visible_end = static_cast<std::ptrdiff_t>(visible_count);
  if (const Stdio* stdio = std::get_if<Stdio>(&*tests)) task.visible_stdio.assign(stdio->tests.begin(), stdio->tests.begin() + visible_end);
  if (const JsonCalls* calls = std::get_if<JsonCalls>(&*tests)) task.visible_calls.assign(calls->calls.begin(), calls->calls.begin() + visible_end);
  task.id = *id;
  task.language = "python";
  task.statement = *question;
  task.prompt = *starter;
  task.hidden = *std::move(tests);
  task.cpu_seconds = 6;
  return task;
}

tl::expected<Task, DataError> stored_livecodebench_task(const detail::Row& row) {
  const auto id = row.text("id", true);
  if (!id) return tl::unexpected(id.error());
  const auto content = row.text("content");
  if (!content) return tl::unexpected(content.error());
  const auto test = row.text("test");
  if (!test) return tl::unexpected(test.error());
  const auto unpacked = unpack(*test);
  if (!unpacked) return tl::unexpected(row.error("test", unpacked.error()));
  const auto found = unpacked->members.find("input_output");
  if (found == unpacked->members.end()) return tl::unexpected(row.error("test", "has no input_output"));
  const auto value = sandbox::parse_json_value(found->second);
  if (!value) return tl::unexpected(row.error("test", "input_output is no JSON: " + value.error().what));
  Task task;
  auto tests = tests_of_input_output(*value, task.entry_point);
  if (!tests) return tl::unexpected(row.error("test", tests.error()));
  task.id = "LiveCodeBench/" + *id;
  task.language = "python";
  task.statement = *content;
  task.hidden = *std::move(tests);
  task.cpu_seconds = 6;
  return task;
}

}  // namespace

bool recognises_livecodebench(const detail::Row& row) {
  if (row.has("public_test_cases") && row.has("question_content")) return true;
  const Value* test = detail::member(row.value(), "test");
  return row.has("content") && test != nullptr && test->kind == Value::Kind::string && test->text.starts_with("eJ");
}

Loaded load_livecodebench(Rows rows) {
  Benchmark benchmark;
  benchmark.name = "livecodebench";
  const bool has_public = rows.front().has("public_test_cases");
  benchmark.prompt_id = has_public ? "livecodebench/question+starter+public tests" : "livecodebench/question+starter";
  for (const detail::Row& row : rows) {
    auto task = has_public ? livecodebench_task(row) : stored_livecodebench_task(row);
    if (!task) return tl::unexpected(task.error());
    benchmark.tasks.push_back(*std::move(task));
  }
  return benchmark;
}

}  // namespace fixpoint::evals::datasets
