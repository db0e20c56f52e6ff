// What LiveCodeBench, APPS and CodeContests share: tests as {"inputs", "outputs", "fn_name"}.
#include "evals/datasets/formats.h"

namespace fixpoint::evals::datasets {
namespace {

using sandbox::Value;

/// A call's arguments: a list of values (APPS), or text with a JSON value a line (LiveCodeBench).
tl::expected<Value, std::string> arguments_of(const Value& input) {
  if (input.kind == Value::Kind::list) return input;
  if (input.kind != Value::Kind::string) return tl::unexpected("an input is " + std::string(detail::json_kind(input)));
  Value out = Value::list_of({});
  const std::string_view text = input.text;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    auto value = sandbox::parse_json_value(text.substr(start, end - start));
    if (!value) return tl::unexpected("a line of an input is no JSON: " + value.error().what);
    out.items.push_back(*std::move(value));
    start = end + 1;
  }
  return out;
}

tl::expected<JsonCalls::Call, std::string> call_of(const Value& input, const Value& output) {
  auto arguments = arguments_of(input);
  if (!arguments) return tl::unexpected(arguments.error());
  JsonCalls::Call call{*std::move(arguments), output, std::nullopt};
  if (output.kind == Value::Kind::string && input.kind == Value::Kind::string) {
    auto value = sandbox::parse_json_value(output.text);
    if (!value) return tl::unexpected("an output is no JSON: " + value.error().what);
    call.expected = *std::move(value);
  } else if (output.kind == Value::Kind::list && !output.items.empty()) {
    call.also_accepted = output.items.front();
  }
  return call;
}

/// Text, or lines of it.
tl::expected<std::string, std::string> text_of(const Value& value) {
  if (value.kind == Value::Kind::string) return value.text;
  if (value.kind != Value::Kind::list) return tl::unexpected("a test is " + std::string(detail::json_kind(value)) + ", not text");
  std::string out;
  for (const Value& line : value.items) {
    if (line.kind != Value::Kind::string) return tl::unexpected("a line of a test is " + std::string(detail::json_kind(line)));
    out += (out.empty() ? "" : "\n") + line.text;
  }
  return out;
}

}  // namespace

tl::expected<Tests, std::string> tests_of_input_output(const Value& value, std::string& entry_point) {
  const Value* inputs = detail::member(value, "inputs");
  const Value* outputs = detail::member(value, "outputs");
  if (inputs == nullptr || inputs->kind != Value::Kind::list) return tl::unexpected(std::string("has no array 'inputs'"));
  if (outputs == nullptr || outputs->kind != Value::Kind::list) return tl::unexpected(std::string("has no array 'outputs'"));
  if (inputs->items.size() != outputs->items.size()) return tl::unexpected(std::string("has a different number of inputs and outputs"));
  if (inputs->items.empty()) return tl::unexpected(std::string("has no tests"));
  const Value* function = detail::member(value, "fn_name");
  if (function == nullptr || function->kind == Value::Kind::none) {
    Stdio tests;
    for (std::size_t i = 0; i < inputs->items.size(); ++i) {
      auto input = text_of(inputs->items[i]);
      if (!input) return tl::unexpected(input.error());
      auto output = text_of(outputs->items[i]);
      if (!output) return tl::unexpected(output.error());
      tests.tests.push_back({*std::move(input), *std::move(output)});
    }
    return tests;
  }
  if (function->kind != Value::Kind::string || function->text.empty()) return tl::unexpected(std::string("has an 'fn_name' that is no name"));
  entry_point = function->text;
  JsonCalls tests;
  for (std::size_t i = 0; i < inputs->items.size(); ++i) {
    auto call = call_of(inputs->items[i], outputs->items[i]);
    if (!call) return tl::unexpected(call.error());
    tests.calls.push_back(*std::move(call));
  }
  return tests;
}

std::string_view contest_prelude() {
  return "from string import *\nfrom re import *\nfrom datetime import *\nfrom collections import *\nfrom heapq import *\n"
         "from bisect import *\nfrom copy import *\nfrom math import *\nfrom random import *\nfrom statistics import *\n"
         "from itertools import *\nfrom functools import *\nfrom operator import *\nfrom io import *\nfrom sys import *\n"
         "from json import *\nfrom builtins import *\nfrom typing import *\nimport string, re, datetime, collections, heapq, bisect\n"
         "import copy, math, random, statistics, itertools, functools, operator, io, sys, json\nsys.setrecursionlimit(50000)\n";
}

}  // namespace fixpoint::evals::datasets
