#pragma once

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "agent/task.h"

namespace fixpoint::agent::detail {

[[nodiscard]] nlohmann::json task_to_json(const Task& task);
[[nodiscard]] tl::expected<Task, TaskError> task_from_json(const nlohmann::json& json);
[[nodiscard]] nlohmann::json test_to_json(const Test& test);
[[nodiscard]] tl::expected<Test, TaskError> test_from_json(const nlohmann::json& json);

}  // namespace fixpoint::agent::detail
