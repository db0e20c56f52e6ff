#include "evals/merge.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

std::size_t first_task(const Part& part) {
  std::size_t out = std::string::npos;
  for (const auto& [key, record] : part.run.records) out = std::min(out, record.index);
  return out;
}

/// Why a part has no numbers of its own yet; empty where it has.
std::string unfinished(const Part& part) {
  const auto& records = part.run.records;
  if (records.empty() || records.size() != part.run.info.programs) {
    return "it holds " + std::to_string(records.size()) + " of " + std::to_string(part.run.info.programs) + " programs";
  }
  const auto due = std::count_if(records.begin(), records.end(), [](const auto& entry) { return entry.second.repeat_due; });
  return due == 0 ? "" : std::to_string(due) + " timeouts are still to be repeated";
}

/// Why the parts are none of one run; empty where they are.
std::string differences(const std::vector<Part>& parts) {
  const Part& first = parts.front();
  for (const auto& [name, value] : first.run.info.budget) {
    if (name.ends_with(" in all")) return first.name + ": each part had the budget '" + name + "' for itself; a run has it once";
  }
  for (const Part& part : parts) {
    const std::string difference = first.run.info.difference(part.run.info);
    if (!difference.empty()) return first.name + " and " + part.name + " are not of one run: " + difference;
    if (const std::string why = unfinished(part); !why.empty()) return part.name + " is not finished: " + why + " (--resume goes on)";
  }
  std::map<std::string, const Part*> owners;
  for (const Part& part : parts) {
    for (const auto& [key, record] : part.run.records) {
      const Part* owner = owners.try_emplace(record.task, &part).first->second;
      if (owner != &part) return owner->name + " and " + part.name + " overlap: both have task " + record.task;
    }
  }
  return {};
}

/// "--filter F --shard 2/4" taken apart.
struct Shard {
  std::string rest;
  std::size_t number = 0;
  std::size_t count = 0;
};

/// Nothing where the selection does not end with a shard (a limit behind it counts within the shard).
std::optional<Shard> shard_of(const std::string& selection) {
  constexpr std::string_view kOption = "--shard ";
  const std::size_t at = selection.rfind(kOption);
  if (at == std::string::npos || (at > 0 && selection[at - 1] != ' ')) return std::nullopt;
  Shard out{.rest = selection.substr(0, at == 0 ? 0 : at - 1)};
  char more = '\0';
  if (std::sscanf(selection.c_str() + at + kOption.size(), "%zu/%zu%c", &out.number, &out.count, &more) != 2) return std::nullopt;
  return out;
}

/// That of the undivided run where every shard is there; else all of them.
std::string joined_selection(const std::vector<Part>& parts) {
  const auto first = shard_of(parts.front().run.info.selection);
  std::set<std::size_t> shards;
  std::string joined;
  for (const Part& part : parts) {
    const std::string& selection = part.run.info.selection;
    const auto shard = shard_of(selection);
    if (first && shard && shard->rest == first->rest && shard->count == first->count) shards.insert(shard->number);
    joined += (joined.empty() ? "" : " + ") + selection;
  }
  return first && shards.size() == first->count && parts.size() == first->count ? first->rest : joined;
}

/// Each value that the parts have, once.
std::string joined(const std::vector<Part>& parts, std::string RunInfo::*member) {
  std::vector<std::string> values;
  std::string out;
  for (const Part& part : parts) {
    const std::string& value = part.run.info.*member;
    if (std::find(values.begin(), values.end(), value) != values.end()) continue;
    out += (values.empty() ? "" : " + ") + value;
    values.push_back(value);
  }
  return out;
}

}  // namespace

tl::expected<Part, std::string> read_part(const std::filesystem::path& path) {
  auto run = read_results(path);
  if (!run) return tl::unexpected(run.error());
  Part out{.name = path.string(), .run = *std::move(run)};
  std::error_code code;
  const auto bytes = detail::read_file((std::filesystem::is_directory(path, code) ? path : path.parent_path()) / "summary.json");
  if (!bytes) return out;
  const auto summary = nlohmann::json::parse(*bytes, nullptr, false);
  if (summary.is_object() && summary.contains("seconds") && summary["seconds"].is_number()) out.seconds = summary["seconds"].get<double>();
  return out;
}

tl::expected<MergedRun, std::string> merge(std::vector<Part> parts) {
  if (parts.empty()) return tl::unexpected(std::string("there is nothing to merge"));
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return first_task(a) < first_task(b); });
  if (std::string why = differences(parts); !why.empty()) return tl::unexpected(std::move(why));
  MergedRun out{.info = parts.front().run.info};
  for (std::string RunInfo::*member : {&RunInfo::data_file, &RunInfo::source_name, &RunInfo::version, &RunInfo::commit, &RunInfo::machine, &RunInfo::sandbox}) {
    out.info.*member = joined(parts, member);
  }
  out.info.selection = joined_selection(parts);
  out.info.programs = 0;
  StoredRun all;
  for (Part& part : parts) {
    out.info.programs += part.run.info.programs;
    out.info.started = std::min(out.info.started, part.run.info.started);
    out.seconds += part.seconds;
    all.records.merge(part.run.records);
  }
  out.records = in_order(all);
  return out;
}

}  // namespace fixpoint::evals
