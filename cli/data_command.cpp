#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_data.h"
#include "cli/terminal.h"
#include "evals/catalog.h"

namespace fixpoint::cli {
namespace {

struct ListOptions {
  std::string folder;
  bool print_json = false;
};

std::string_view name(evals::FileState state) {
  switch (state) {
    case evals::FileState::good: return "good";
    case evals::FileState::absent: return "absent";
    case evals::FileState::other_bytes: return "other bytes";
    case evals::FileState::unreadable: return "unreadable";
  }
  return "?";
}

int list(const ListOptions& options) {
  const std::filesystem::path folder = options.folder.empty() ? default_data_folder() : std::filesystem::path(options.folder);
  auto reports = evals::check_files(folder);
  reports.push_back(evals::check_file(evals::family_file(), own_data_folder()));
  bool damaged = false;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!options.print_json) std::printf("%s\n", folder.string().c_str());
  for (const evals::FileReport& report : reports) {
    const evals::KnownFile& known = *report.known;
    damaged = damaged || (report.state != evals::FileState::good && report.state != evals::FileState::absent);
    rows.push_back({{"benchmark", known.benchmark}, {"path", known.path}, {"state", name(report.state)}, {"tasks", known.tasks}, {"sha256", known.sha256},
                    {"source", known.source}, {"licence", known.licence}, {"message", report.message}});
    if (options.print_json) continue;
    std::printf("  %-32s %-12s %5zu tasks  %s\n", std::string(known.benchmark).c_str(), std::string(name(report.state)).c_str(), known.tasks,
                std::string(known.path).c_str());
    if (report.state != evals::FileState::good) {
      std::printf("      %s\n      from %s (%s)\n      sha256 %s\n", report.message.c_str(), std::string(known.source).c_str(), std::string(known.licence).c_str(),
                  std::string(known.sha256).c_str());
    }
  }
  if (options.print_json) std::printf("%s\n", rows.dump().c_str());
  return damaged ? kFailure : kSuccess;
}

}  // namespace

void add_data_command(CLI::App& app, Run& run) {
  auto* data = app.add_subcommand("data", "Benchmark files: where they come from, whether they are there and whole");
  data->require_subcommand(1);
  auto* command = data->add_subcommand("list", "Each known file, checked by hash and number of tasks");
  auto options = std::make_shared<ListOptions>();
  command->add_option("--data", options->folder, "Folder with the files (default: $FIXPOINT_DATA, else fixpoint/benchmarks in $XDG_DATA_HOME, else in ~/.local/share)");
  command->add_flag("--json", options->print_json, "Print one JSON array");
  command->callback([options, &run] { run = [options] { return list(*options); }; });
}

}  // namespace fixpoint::cli
