#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "sandbox/sandbox.h"

namespace fixpoint::cli {

namespace {

using nlohmann::json;
namespace sb = fixpoint::sandbox;

int print_json(const sb::Sandbox& sandbox) {
  json out;
  out["protections"] = json::array();
  for (const sb::Probe& probe : sandbox.probes()) {
    out["protections"].push_back(
        {{"name", sb::name(probe.protection)}, {"active", probe.active}, {"proof", probe.proof}});
  }
  out["languages"] = json::array();
  for (const sb::ToolchainReport& report : sandbox.toolchains().reports) {
    out["languages"].push_back(
        {{"name", sb::name(report.language)}, {"available", report.available}, {"detail", report.detail}});
  }
  std::cout << out.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  return sandbox.protections().missing.empty() ? kSuccess : kFailure;
}

int print_text(const sb::Sandbox& sandbox) {
  std::puts("Protections around every run:");
  for (const sb::Probe& probe : sandbox.probes()) {
    std::printf("  %-8s %-18s %s\n", probe.active ? "active" : "MISSING", std::string(sb::name(probe.protection)).c_str(),
                probe.proof.c_str());
  }
  std::puts("Languages:");
  for (const sb::ToolchainReport& report : sandbox.toolchains().reports) {
    std::printf("  %-8s %-18s %s\n", report.available ? "found" : "absent", std::string(sb::name(report.language)).c_str(),
                report.detail.c_str());
  }
  return sandbox.protections().missing.empty() ? kSuccess : kFailure;
}

int examine(bool as_json) {
  sb::Options options;
  options.accept = sb::Strength::degraded;  // say what is missing instead of refusing
  options.warm = false;
  const auto sandbox = sb::Sandbox::start(std::move(options));
  if (!sandbox) return fail("sandbox: " + sandbox.error().message());
  return as_json ? print_json(*sandbox) : print_text(*sandbox);
}

}  // namespace

void add_doctor_command(CLI::App& app, Run& run) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Prove what the sandbox can do on this host");
  command->add_flag("--json", *as_json, "Print as JSON");
  command->footer("Exit codes: 0 every protection is active, 1 something is missing.");
  command->callback([as_json, &run] { run = [as_json] { return examine(*as_json); }; });
}

}  // namespace fixpoint::cli
