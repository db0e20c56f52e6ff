#include "attack_program.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace fixpoint::sandbox::attacks {
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void read_notes(AttackProgram& attack) {
  std::istringstream lines(attack.source);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find('@');
    if (at == line.npos || line.find_first_not_of("/# ") != at) break;
    const auto space = line.find(' ', at);
    const auto key = line.substr(at + 1, space == line.npos ? line.npos : space - at - 1);
    attack.notes[key].push_back(space == line.npos ? "" : trimmed(std::string_view(line).substr(space)));
  }
  if (!attack.has("attack")) throw std::runtime_error(attack.name + ": @attack is missing");
}

std::uint64_t number(const std::string& text) {
  std::size_t end = 0;
  const std::uint64_t value = std::stoull(text, &end);
  const std::string unit = text.substr(end);
  return unit == "K" ? value << 10 : unit == "M" ? value << 20 : unit.empty() ? value : throw std::runtime_error("bad number " + text);
}

void read_limits(Limits& limits, const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto at = word.find('=');
    const std::string key = word.substr(0, at);
    const std::uint64_t value = number(word.substr(at + 1));
    if (key == "memory") limits.memory_bytes = value;
    else if (key == "wall") limits.wall = std::chrono::milliseconds(value);
    else if (key == "cpu") limits.cpu = std::chrono::milliseconds(value);
    else if (key == "processes") limits.processes = static_cast<std::uint32_t>(value);
    else if (key == "output") limits.output_bytes = value;
    else if (key == "files") limits.file_bytes = value;
    else if (key == "inodes") limits.inodes = static_cast<std::uint32_t>(value);
    else throw std::runtime_error("no limit " + key);
  }
}

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == text.npos) return {};
  const auto start = text.rfind('\n', end);
  return text.substr(start == text.npos ? 0 : start + 1, end - (start == text.npos ? 0 : start + 1) + 1);
}

bool matches(const std::string& expected, const Verdict& verdict) {
  if (expected == "held") return verdict.ok() && last_line(verdict.standard_output.bytes) == "held";
  if (expected == "exit") return std::holds_alternative<ExitNonzero>(verdict.outcome);
  if (expected.starts_with("denied ")) {
    const auto* denied = std::get_if<SyscallDenied>(&verdict.outcome);
    const bool named = verdict.protections.has(Protection::seccomp_names);
    return denied && (denied->name == expected.substr(7) || !named);
  }
  return expected == name(verdict.outcome);
}

std::string artefact_complaint(const AttackProgram& attack, const Verdict& verdict) {
  if (!attack.has("artefact")) return {};
  if (verdict.artefacts.size() != 1) return "one artefact was expected, refused or not";
  const Artefact& artefact = verdict.artefacts[0];
  if (attack.note("artefact") == "refused" && (artefact.refused.empty() || !artefact.content.empty())) return "the artefact was taken";
  if (attack.note("artefact") == "mine" && artefact.refused.empty() && artefact.content != "mine") return "another file was taken";
  if (attack.note("artefact") == "small" && artefact.content.size() > (256u << 20)) return "the artefact was taken at its apparent size";
  return {};
}

}  // namespace

std::string AttackProgram::note(const std::string& key) const {
  const auto found = notes.find(key);
  return found == notes.end() ? std::string{} : found->second.front();
}

std::vector<AttackProgram> load_programs(const std::filesystem::path& root, const std::vector<std::string>& kinds) {
  const std::map<std::string, Language> languages = {
      {".c", Language::c}, {".cpp", Language::cpp}, {".py", Language::python}, {".sh", Language::bash}, {".js", Language::javascript}};
  std::vector<AttackProgram> out;
  for (const std::string& kind : kinds) {
    for (const auto& entry : std::filesystem::directory_iterator(root / kind)) {
      AttackProgram& attack = out.emplace_back();
      attack.name = kind + "/" + entry.path().stem().string();
      attack.language = languages.at(entry.path().extension().string());
      attack.source = read_file(entry.path());
      read_notes(attack);
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

std::vector<AttackProgram> load_attacks(const std::filesystem::path& root) {
  auto out = load_programs(root, {"syscalls", "files", "processes_time", "memory", "network_ipc", "output"});
  for (const AttackProgram& attack : out) {
    if (!attack.has("expect")) throw std::runtime_error(attack.name + ": @expect is missing");
  }
  return out;
}

Job job_of(const AttackProgram& attack, const Placeholders& placeholders, const std::string& attack_header) {
  Job job;
  job.language = attack.language;
  job.source = attack.source;
  job.limits = {.cpu = std::chrono::seconds(5), .wall = std::chrono::seconds(90), .memory_bytes = 128 << 20};
  read_limits(job.limits, attack.note("limits"));
  // A hostile compilation must end too, and soon.
  job.compile_limits.cpu = std::chrono::seconds(5);
  job.compile_limits.memory_bytes = 512 << 20;
  job.compile_limits.file_bytes = 64 << 20;
  if (attack.language == Language::c) job.files.push_back({"attack.h", attack_header});
  std::istringstream words(attack.note("arguments"));
  for (std::string word; words >> word;) job.arguments.push_back(word.starts_with('$') ? placeholders.at(word.substr(1)) : word);
  if (attack.has("input-bytes")) job.input.assign(number(attack.note("input-bytes")), 'i');
  if (attack.has("collect")) job.collect = {attack.note("collect")};
  return job;
}

std::string complaint(const AttackProgram& attack, const Verdict& verdict, const std::string& mode) {
  const std::string own = "expect(" + mode + ")";
  const std::string expected = attack.note(attack.has(own) ? own : "expect");
  std::istringstream alternatives(expected);
  bool fits = false;
  for (std::string one; std::getline(alternatives, one, '|');) fits = fits || matches(trimmed(one), verdict);
  const std::string& out = verdict.standard_output.bytes;
  std::string why;
  if (!fits) why = "expected " + expected;
  if (out.find("ESCAPED") != out.npos) why = "it escaped";
  if (out.find("BROKEN") != out.npos) why = "the attack could not be tried";
  if (attack.has("output") && out.find(attack.note("output")) == out.npos) why = "its output is not " + attack.note("output");
  if (attack.has("stdout-hex") && hex(out) != attack.note("stdout-hex")) why = "its output is " + hex(out);
  if (attack.has("never")) {
    for (const std::string& text : attack.notes.at("never")) {
      if (out.find(text) != out.npos || verdict.standard_error.bytes.find(text) != text.npos) why = "it shows " + text;
    }
  }
  if (why.empty()) why = artefact_complaint(attack, verdict);
  if (why.empty()) return why;
  return attack.name + " [" + mode + "]: " + why + "; it " + describe(verdict.outcome) + "; printed \"" + out.substr(0, 300) + "\" \"" +
         verdict.standard_error.bytes.substr(0, 500) + "\"";
}

}  // namespace fixpoint::sandbox::attacks
