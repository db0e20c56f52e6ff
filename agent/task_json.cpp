#include "agent/detail/json_text.h"
#include "agent/detail/names.h"
#include "agent/detail/task_json.h"
#include "agent/detail/utf8.h"

namespace fixpoint::agent {
namespace {

using Json = nlohmann::json;

/// Reads one string field; absent is fine unless `required`.
std::optional<TaskError> read_string(const Json& object, const char* name, std::string& value, bool required = false) {
  const auto found = object.find(name);
  if (found == object.end()) {
    if (required) return TaskError{name, "missing"};
    return std::nullopt;
  }
  if (!found->is_string()) return TaskError{name, "not a string"};
  value = found->get<std::string>();
  return std::nullopt;
}

TaskError within(const std::string& where, TaskError error) {
  error.where = error.where.empty() ? where : where + "." + error.where;
  return error;
}

std::optional<TaskError> read_tests(const Json& object, const char* name, std::vector<Test>& tests) {
  const auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  if (!found->is_array()) return TaskError{name, "not a list"};
  for (std::size_t i = 0; i < found->size(); ++i) {
    auto test = detail::test_from_json((*found)[i]);
    if (!test) return within(std::string(name) + "[" + std::to_string(i) + "]", test.error());
    tests.push_back(*std::move(test));
  }
  return std::nullopt;
}

std::optional<TaskError> read_files(const Json& object, std::vector<ContextFile>& files) {
  const auto found = object.find("files");
  if (found == object.end()) return std::nullopt;
  if (!found->is_array()) return TaskError{"files", "not a list"};
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string where = "files[" + std::to_string(i) + "]";
    const Json& item = (*found)[i];
    if (!item.is_object()) return TaskError{where, "not an object"};
    ContextFile file;
    if (auto error = read_string(item, "path", file.path, true)) return within(where, *error);
    if (auto error = read_string(item, "content", file.content, true)) return within(where, *error);
    files.push_back(std::move(file));
  }
  return std::nullopt;
}

std::optional<TaskError> read_task(const Json& json, Task& task) {
  if (!json.is_object()) return TaskError{"", "not a JSON object"};
  static constexpr std::string_view kKnown[] = {"id",    "statement", "language",     "entry_point", "setup",
                                                "files", "tests",     "hidden_tests", "shown_tests"};
  for (const auto& [name, value] : json.items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) return TaskError{name, "unknown field"};
  }
  if (auto error = read_string(json, "id", task.id)) return error;
  if (auto error = read_string(json, "statement", task.statement, true)) return error;
  if (auto error = read_string(json, "language", task.language)) return error;
  if (auto error = read_string(json, "entry_point", task.entry_point)) return error;
  if (auto error = read_string(json, "setup", task.setup)) return error;
  task.language = canonical_language(task.language);
  if (const auto shown = json.find("shown_tests"); shown != json.end()) {
    if (!shown->is_number_integer() || *shown < 0 || *shown > 100) return TaskError{"shown_tests", "not within 0..100"};
    task.shown_tests = shown->get<int>();
  }
  if (auto error = read_files(json, task.context)) return error;
  if (auto error = read_tests(json, "tests", task.visible)) return error;
  return read_tests(json, "hidden_tests", task.hidden);
}

}  // namespace

namespace detail {

Json test_to_json(const Test& test) {
  struct Visitor {
    Json operator()(const Assertion& it) const { return {{"assert", it.code}}; }
    Json operator()(const StdioCase& it) const { return {{"stdin", it.input}, {"stdout", it.output}}; }
    Json operator()(const CheckFunction& it) const { return {{"check", it.code}}; }
    Json operator()(const TestFile& it) const { return {{"file", it.name}, {"content", it.content}}; }
  };
  Json json = std::visit(Visitor{}, test.body);
  if (test.origin != TestOrigin::given) {
    json["origin"] = name_of(test.origin);
  } else if (const auto* assertion = std::get_if<Assertion>(&test.body)) {
    return assertion->code;
  }
  return json;
}

tl::expected<Test, TaskError> test_from_json(const Json& json) {
  if (json.is_string()) return Test{Assertion{json.get<std::string>()}};
  if (!json.is_object()) return tl::unexpected(TaskError{"", "neither a string nor an object"});
  Test test;
  std::string origin = "given";
  if (auto error = read_string(json, "origin", origin)) return tl::unexpected(*error);
  const auto parsed = value_of<TestOrigin>(origin);
  if (!parsed) return tl::unexpected(TaskError{"origin", "unknown name '" + origin + "'"});
  test.origin = *parsed;
  if (json.contains("assert")) {
    Assertion it;
    if (auto error = read_string(json, "assert", it.code, true)) return tl::unexpected(*error);
    test.body = std::move(it);
  } else if (json.contains("stdin") || json.contains("stdout")) {
    StdioCase it;
    if (auto error = read_string(json, "stdin", it.input)) return tl::unexpected(*error);
    if (auto error = read_string(json, "stdout", it.output, true)) return tl::unexpected(*error);
    test.body = std::move(it);
  } else if (json.contains("check")) {
    CheckFunction it;
    if (auto error = read_string(json, "check", it.code, true)) return tl::unexpected(*error);
    test.body = std::move(it);
  } else if (json.contains("file")) {
    TestFile it;
    if (auto error = read_string(json, "file", it.name, true)) return tl::unexpected(*error);
    if (auto error = read_string(json, "content", it.content, true)) return tl::unexpected(*error);
    test.body = std::move(it);
  } else {
    return tl::unexpected(TaskError{"", "none of \"assert\", \"stdin\"/\"stdout\", \"check\", \"file\""});
  }
  return test;
}

Json task_to_json(const Task& task) {
  Json json{{"statement", task.statement}, {"language", task.language}, {"shown_tests", task.shown_tests}};
  if (!task.id.empty()) json["id"] = task.id;
  if (!task.entry_point.empty()) json["entry_point"] = task.entry_point;
  if (!task.setup.empty()) json["setup"] = task.setup;
  for (const ContextFile& file : task.context) json["files"].push_back({{"path", file.path}, {"content", file.content}});
  for (const Test& test : task.visible) json["tests"].push_back(test_to_json(test));
  for (const Test& test : task.hidden) json["hidden_tests"].push_back(test_to_json(test));
  return json;
}

tl::expected<Task, TaskError> task_from_json(const Json& json) {
  Task task;
  if (auto error = read_task(json, task)) return tl::unexpected(*std::move(error));
  if (auto error = validate(task)) return tl::unexpected(*std::move(error));
  return task;
}

}  // namespace detail

tl::expected<Task, TaskError> parse_task_json(std::string_view text) {
  constexpr int kMaxDepth = 16;  // a task has four levels; deeper nesting is refused before it costs memory
  bool too_deep = false;
  const auto json = detail::parse_json(text, [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  });
  if (too_deep) return tl::unexpected(TaskError{"", "nested deeper than " + std::to_string(kMaxDepth) + " levels"});
  if (!json) return tl::unexpected(TaskError{"", json.error()});
  auto task = detail::task_from_json(*json);
  if (!task) return task;
  // Examples in the statement are tests too, unless tests say so already.
  if (task->visible.empty() && task->language == "python") task->visible = find_doctests(task->statement);
  return task;
}

std::string to_json(const Task& task) {
  return detail::task_to_json(task).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fixpoint::agent
