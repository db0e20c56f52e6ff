#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "agent/detail/names.h"
#include "agent/detail/task_json.h"
#include "agent/event.h"

// One description of each struct's JSON fields, used for writing and for reading.
namespace fixpoint::agent::detail {

using Json = nlohmann::json;

template <class A>
void fields(A& a, Amounts& v) {
  a("rounds", v.rounds), a("tokens", v.tokens), a("wall_ms", v.wall), a("sandbox_ms", v.sandbox);
}
template <class A>
void fields(A& a, Usage& v) {
  a("prompt_tokens", v.prompt_tokens), a("cached_tokens", v.cached_tokens), a("completion_tokens", v.completion_tokens);
}
template <class A>
void fields(A& a, FeedbackKinds& v) {
  a("unit_test", v.unit_test), a("explanation", v.explanation), a("trace", v.trace);
}
template <class A>
void fields(A& a, Rung& v) {
  a("kind", v.kind), a("attempts", v.attempts), a("grant", v.grant);
}
template <class A>
void fields(A& a, LoopOptions& v) {
  a("task", v.task), a("round", v.round), a("drafts", v.drafts), a("feedback", v.feedback), a("temperature", v.temperature);
  a("branch_temperature", v.branch_temperature), a("top_p", v.top_p), a("seed", v.seed), a("own_tests", v.own_tests);
  a("ladder", v.ladder);
}
template <class A>
void fields(A& a, FailedTest& v) {
  a("index", v.index), a("test", v.test), a("input", v.input), a("expected", v.expected), a("actual", v.actual);
  a("difference", v.difference), a("error", v.error);
}
template <class A>
void fields(A& a, TraceLine& v) {
  a("line", v.line), a("source", v.source), a("effect", v.effect);
}
template <class A>
void fields(A& a, Judgement& v) {
  a("status", v.status), a("passed", v.passed), a("total", v.total), a("failures", v.failures), a("message", v.message);
  a("output", v.output), a("trace", v.trace), a("trace_left_out", v.trace_left_out), a("trace_head", v.trace_head);
  a("sandbox_ms", v.sandbox), a("elapsed_ms", v.elapsed);
}
template <class A>
void fields(A& a, Ask& v) {
  a("purpose", v.purpose), a("writer", v.writer), a("parent", v.parent), a("user_text", v.user_text);
  a("whole_history", v.whole_history), a("feedback", v.feedback), a("temperature", v.temperature), a("top_p", v.top_p);
  a("seed", v.seed), a("max_tokens", v.max_tokens), a("prompt_sha256", v.prompt_sha256);
}
template <class A>
void fields(A& a, SessionStarted& v) {
  a("task", v.task), a("options", v.options), a("prompt_version", v.prompt_version), a("in_batch", v.in_batch);
  a("model", v.model), a("specialist", v.specialist), a("explainer", v.explainer);
}
template <class A>
void fields(A& a, RoundStarted& v) {
  a("number", v.number), a("drafts", v.drafts), a("purpose", v.purpose), a("writer", v.writer), a("parent", v.parent);
  a("heated", v.heated), a("add_trace", v.add_trace), a("whole_history", v.whole_history), a("uses_rung", v.uses_rung);
  a("again", v.again), a("cost", v.cost), a("left", v.left);
}
template <class A>
void fields(A& a, GenerationStarted& v) {
  a("attempt", v.attempt), a("number", v.number), a("draft", v.draft), a("ask", v.ask);
}
template <class A>
void fields(A& a, TextDelta& v) {
  a("attempt", v.attempt), a("text", v.text);
}
template <class A>
void fields(A& a, Generated& v) {
  a("attempt", v.attempt), a("text", v.text), a("finish", v.finish), a("usage", v.usage), a("cost", v.cost);
}
template <class A>
void fields(A& a, GenerationFailed& v) {
  a("attempt", v.attempt), a("kind", v.kind), a("detail", v.detail), a("usage", v.usage), a("cost", v.cost);
}
template <class A>
void fields(A& a, Explained& v) {
  a("attempt", v.attempt), a("text", v.text);
}
template <class A>
void fields(A& a, ProgramWritten& v) {
  a("attempt", v.attempt), a("program", v.program), a("kind", v.kind);
}
template <class A>
void fields(A& a, TestsWritten& v) {
  a("attempt", v.attempt), a("tests", v.tests);
}
template <class A>
void fields(A& a, CheckStarted& v) {
  a("attempt", v.attempt);
}
template <class A>
void fields(A& a, Checked& v) {
  a("attempt", v.attempt), a("judgement", v.judgement), a("cost", v.cost);
}
template <class A>
void fields(A& a, CheckFailed& v) {
  a("attempt", v.attempt), a("kind", v.kind), a("detail", v.detail), a("cost", v.cost);
}
template <class A>
void fields(A& a, Stuck& v) {
  a("reason", v.reason), a("attempt", v.attempt);
}
template <class A>
void fields(A& a, Climbed& v) {
  a("rung", v.rung), a("kind", v.kind), a("grant", v.grant), a("left", v.left);
}
template <class A>
void fields(A& a, Scored& v) {
  a("attempt", v.attempt), a("judgement", v.judgement);
}
template <class A>
void fields(A& a, Ended& v) {
  a("outcome", v.outcome), a("basis", v.basis), a("best", v.best), a("detail", v.detail), a("escalation", v.escalation);
  a("spent", v.spent), a("left", v.left), a("usage", v.usage);
}
template <class A>
void fields(A&, Resumed&) {}
template <class A>
void fields(A& a, HintGiven& v) {
  a("by", v.by), a("text", v.text), a("grant", v.grant);
}
template <class A>
void fields(A& a, ProgramSubmitted& v) {
  a("by", v.by), a("program", v.program), a("grant", v.grant);
}
template <class A>
void fields(A& a, Declined& v) {
  a("by", v.by), a("reason", v.reason);
}

template <class T>
Json write_json(const T& value);

struct FieldWriter {
  Json& out;
  template <class T>
  void operator()(const char* name, const T& value) {
    out[name] = write_json(value);
  }
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
Json write_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    return value.count();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, Task>) {
    return task_to_json(value);
  } else if constexpr (std::is_same_v<T, Test>) {
    return test_to_json(value);
  } else if constexpr (IsOptional<T>::value) {
    return value ? write_json(*value) : Json(nullptr);
  } else if constexpr (IsVector<T>::value) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(write_json(item));
    return list;
  } else {
    Json object = Json::object();
    FieldWriter writer{object};
    fields(writer, const_cast<T&>(value));  // the writer only reads
    return object;
  }
}

/// Reads what is there; a missing field keeps its default, a wrong type is an error that names it.
struct FieldReader {
  const Json& in;
  std::string* error;

  template <class T>
  void operator()(const char* name, T& value) {
    const auto found = in.find(name);
    if (found == in.end() || !error->empty()) return;
    read(*found, value);
    if (!error->empty()) *error = std::string(name) + ": " + *error;
  }

  template <class T>
  void read(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto parsed = json.is_string() ? value_of<T>(json.get_ref<const std::string&>()) : std::nullopt;
      if (!parsed) return fail("unknown name");
      value = *parsed;
    } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
      if (!json.is_number_integer()) return fail("not an integer");
      value = std::chrono::milliseconds(json.get<std::int64_t>());
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return fail("not true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      if (!json.is_number_integer()) return fail("not an integer");
      value = json.get<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number()) return fail("not a number");
      value = json.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return fail("not a string");
      value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, Task>) {
      auto task = task_from_json(json);
      if (!task) return fail(task.error().message());
      value = *std::move(task);
    } else if constexpr (std::is_same_v<T, Test>) {
      auto test = test_from_json(json);
      if (!test) return fail(test.error().message());
      value = *std::move(test);
    } else if constexpr (IsOptional<T>::value) {
      value.reset();
      if (json.is_null()) return;
      read(json, value.emplace());
    } else if constexpr (IsVector<T>::value) {
      if (!json.is_array()) return fail("not a list");
      value.clear();
      for (const Json& item : json) read(item, value.emplace_back());
    } else {
      if (!json.is_object()) return fail("not an object");
      FieldReader reader{json, error};
      fields(reader, value);
    }
  }

  void fail(std::string what) {
    if (error->empty()) *error = std::move(what);
  }
};

}  // namespace fixpoint::agent::detail
