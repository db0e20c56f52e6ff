#pragma once

#include "sandbox/sandbox.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fixpoint::sandbox::attacks {

// One hostile program: a file whose first comments say what it tries and what must come of it.
//   @attack <what it tries>                     @expect <outcome> [| <outcome> …]      (see `expected_here`)
//   @expect(<mode>) …  in that mode instead     @limits memory=64M wall=500 …          @arguments $CANARY …
//   @input-bytes N    @repeat N                 @collect PATH   @artefact refused|small|mine
//   @output TEXT      @stdout-hex HEX           @never TEXT     (nowhere in what comes back)
struct AttackProgram {
  std::string name;   // "syscalls/ptrace_traceme"
  Language language = Language::c;
  std::string source;
  std::map<std::string, std::vector<std::string>> notes;

  [[nodiscard]] std::string note(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const { return notes.contains(key); }
};

// The programs in these folders below `root`, sorted by name.
std::vector<AttackProgram> load_programs(const std::filesystem::path& root, const std::vector<std::string>& kinds);
// Those that attack the sandbox; the ones in verdict_integrity/ attack the judge.
std::vector<AttackProgram> load_attacks(const std::filesystem::path& root);

// What the programs may learn of the host: values for $CANARY and its like.
using Placeholders = std::map<std::string, std::string>;

Job job_of(const AttackProgram& attack, const Placeholders& placeholders, const std::string& attack_header);

// Why this verdict does not show that the attack was held; empty when it does.
//   held: ended well, and the program's last word is "held"   ok, signal, exit, cpu_limit, …: that outcome
//   denied NAME: syscall_denied with that name (with any where the host cannot tell names)
std::string complaint(const AttackProgram& attack, const Verdict& verdict, const std::string& mode);

}  // namespace fixpoint::sandbox::attacks
