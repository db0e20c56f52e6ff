#include "sandbox/detail/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint32_t kNoCall = 0xffffffff;

using Code = std::vector<BpfInstruction>;

BpfInstruction statement(int code, std::uint32_t operand) {
  return {static_cast<std::uint16_t>(code), 0, 0, operand};
}

BpfInstruction jump(int code, std::uint32_t operand, std::size_t if_true, std::size_t if_false) {
  return {static_cast<std::uint16_t>(BPF_JMP | code | BPF_K), static_cast<std::uint8_t>(if_true),
          static_cast<std::uint8_t>(if_false), operand};
}

void append(Code& code, const Code& tail) { code.insert(code.end(), tail.begin(), tail.end()); }

/// The low word of argument `index`; x86-64 is little-endian.
std::uint32_t argument_offset(std::uint8_t index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + sizeof(__u64) * index);
}

/// What a call is answered: by the first of `cases` whose tests hold, or else by `otherwise`.
struct Decision {
  struct Case {
    std::span<const ArgumentTest> tests;
    std::uint32_t answer = 0;
  };
  std::vector<Case> cases;
  std::uint32_t otherwise = 0;
};

/// `unknown`: the answer where no rule holds.
Decision decide(const std::vector<const SyscallRule*>& rules, bool notify, std::uint32_t unknown) {
  Decision decision{{}, unknown};
  for (const SyscallRule* rule : rules) {
    const std::uint32_t answer = filter_answer(rule->action, notify);
    if (rule->tests.empty()) {
      decision.otherwise = answer;
      break;
    }
    decision.cases.push_back({rule->tests, answer});
  }
  return decision;
}

/// Numbers from `first` up to the next range's first are answered alike.
struct Range {
  std::uint32_t first = 0;
  Decision decision;

  [[nodiscard]] bool plain() const { return decision.cases.empty(); }
};

/// Code whose answers stand once, at its end, where conditional jumps lead.
class Block {
 public:
  /// A binary search over [first, last).
  void search(const Range* first, const Range* last);
  /// Empty where a conditional jump does not reach its target.
  [[nodiscard]] std::optional<Code> finish();

 private:
  struct Exit {
    std::size_t from = 0;
    bool if_true = false;
    std::uint32_t answer = 0;
  };

  void decide(const Decision& decision);
  void branch(std::size_t from, bool if_true, const Range* first, const Range* last);
  void land(std::size_t from, bool if_true);

  Code code_;
  std::vector<Exit> exits_;
  bool reached_ = true;
};

/// The jump at `from` leads to what comes next.
void Block::land(std::size_t from, bool if_true) {
  constexpr std::size_t kReach = 255;
  const std::size_t distance = code_.size() - from - 1;
  if (distance > kReach) reached_ = false;
  (if_true ? code_[from].jump_true : code_[from].jump_false) = static_cast<std::uint8_t>(distance);
}

void Block::decide(const Decision& decision) {
  const ArgumentTest* loaded = nullptr;  // whose argument the accumulator holds, masked
  for (const Decision::Case& one : decision.cases) {
    std::vector<std::size_t> failed;
    for (const ArgumentTest& test : one.tests) {
      if (loaded == nullptr || loaded->index != test.index || loaded->mask != test.mask) {
        code_.push_back(statement(BPF_LD | BPF_W | BPF_ABS, argument_offset(test.index)));
        if (test.mask != ~0U) code_.push_back(statement(BPF_ALU | BPF_AND | BPF_K, test.mask));
        loaded = &test;
      }
      const std::size_t from = code_.size();
      code_.push_back(jump(BPF_JEQ, test.value, 0, 0));
      if (&test == &one.tests.back()) exits_.push_back({from, true, one.answer});
      else failed.push_back(from);
    }
    // After several tests it depends on which of them failed.
    if (!failed.empty()) loaded = nullptr;
    for (const std::size_t from : failed) land(from, false);
  }
  code_.push_back(statement(BPF_RET | BPF_K, decision.otherwise));
}

void Block::branch(std::size_t from, bool if_true, const Range* first, const Range* last) {
  if (last - first == 1 && first->plain()) {
    exits_.push_back({from, if_true, first->decision.otherwise});
    return;
  }
  land(from, if_true);
  search(first, last);
}

void Block::search(const Range* first, const Range* last) {
  if (last - first == 1) return decide(first->decision);
  const Range* middle = first + (last - first) / 2;
  const std::size_t from = code_.size();
  code_.push_back(jump(BPF_JGE, middle->first, 0, 0));
  branch(from, false, first, middle);
  branch(from, true, middle, last);
}

std::optional<Code> Block::finish() {
  std::map<std::uint32_t, std::vector<Exit>> answers;
  for (const Exit& exit : exits_) answers[exit.answer].push_back(exit);
  for (const auto& [answer, exits] : answers) {
    for (const Exit& exit : exits) land(exit.from, exit.if_true);
    code_.push_back(statement(BPF_RET | BPF_K, answer));
  }
  if (!reached_) return std::nullopt;
  return std::move(code_);
}

/// One block, or as few as conditional jumps allow; empty where they don't reach over the tests of a single call.
std::optional<Code> search(const Range* first, const Range* last) {
  Block block;
  block.search(first, last);
  if (auto whole = block.finish()) return whole;
  if (last - first == 1) return std::nullopt;
  const Range* middle = first + (last - first) / 2;
  const auto low = search(first, middle);
  const auto high = search(middle, last);
  if (!low || !high) return std::nullopt;
  Code code;
  if (low->size() <= 255) {
    code.push_back(jump(BPF_JGE, middle->first, low->size(), 0));
  } else {  // unconditional jumps reach any distance
    code.push_back(jump(BPF_JGE, middle->first, 0, 1));
    code.push_back(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(low->size())));
  }
  append(code, *low);
  append(code, *high);
  return code;
}

}  // namespace

std::uint64_t BpfInstruction::packed() const {
  std::uint64_t value = 0;
  static_assert(sizeof(BpfInstruction) == sizeof value);
  std::memcpy(&value, this, sizeof value);
  return value;
}

std::uint32_t filter_answer(Action action, bool notify) {
  switch (action) {
    case Action::allow: return SECCOMP_RET_ALLOW;
    case Action::enosys: return SECCOMP_RET_ERRNO | ENOSYS;
    case Action::refuse: return SECCOMP_RET_ERRNO | EPERM;
    case Action::no_family: return SECCOMP_RET_ERRNO | EAFNOSUPPORT;
    case Action::no_terminal: return SECCOMP_RET_ERRNO | ENOTTY;
    case Action::deny: break;
  }
  return notify ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS;
}

tl::expected<std::vector<BpfInstruction>, FilterError> compile_filter(const SyscallPolicy& policy, bool notify) {
  std::map<std::uint32_t, std::vector<const SyscallRule*>> calls;
  for (const SyscallRule& rule : policy.rules) {
    const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, std::string(rule.call).c_str());
    if (number < 0) return tl::unexpected(FilterError{std::string(rule.call), "libseccomp knows no such system call"});
    for (const ArgumentTest& test : rule.tests) {
      if (test.index > 5) return tl::unexpected(FilterError{std::string(rule.call), "argument index over 5"});
    }
    calls[static_cast<std::uint32_t>(number)].push_back(&rule);
  }
  const std::uint32_t unknown = filter_answer(Action::enosys, notify);
  std::vector<Range> ranges{{0, {{}, unknown}}};
  const auto add = [&ranges](std::uint32_t first, Decision decision) {
    if (ranges.back().first == first && ranges.size() > 1) ranges.pop_back();
    const Range& last = ranges.back();
    if (last.first == first) ranges.back().decision = std::move(decision);
    else if (!decision.cases.empty() || !last.plain() || last.decision.otherwise != decision.otherwise) {
      ranges.push_back({first, std::move(decision)});
    }
  };
  for (const auto& [number, rules] : calls) {
    add(number, decide(rules, notify, unknown));
    add(number + 1, {{}, unknown});
  }
  const std::uint32_t denied = filter_answer(Action::deny, notify);
  add(kX32Bit, {{}, denied});
  add(kNoCall, {{}, unknown});

  Code filter;
  filter.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  filter.push_back(jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0));
  filter.push_back(statement(BPF_RET | BPF_K, denied));
  filter.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  const auto found = search(ranges.data(), ranges.data() + ranges.size());
  if (!found) return tl::unexpected(FilterError{"filter", "too many tests of one call"});
  append(filter, *found);
  return filter;
}

tl::expected<std::uint32_t, FilterError> evaluate_filter(const std::vector<BpfInstruction>& filter,
                                                         const SyscallData& data) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < filter.size(); ++at) {
    const BpfInstruction& instruction = filter[at];
    const std::uint32_t k = instruction.operand;
    const auto branch = [&](bool taken) { at += taken ? instruction.jump_true : instruction.jump_false; };
    switch (instruction.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (k % 4 != 0 || k + 4 > sizeof data) return tl::unexpected(FilterError{"load", "outside the data"});
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K: accumulator &= k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: branch(accumulator == k); break;
      case BPF_JMP | BPF_JGE | BPF_K: branch(accumulator >= k); break;
      case BPF_JMP | BPF_JGT | BPF_K: branch(accumulator > k); break;
      case BPF_JMP | BPF_JSET | BPF_K: branch((accumulator & k) != 0); break;
      case BPF_JMP | BPF_JA: at += k; break;
      case BPF_RET | BPF_K: return k;
      default: return tl::unexpected(FilterError{"instruction", "unknown code " + std::to_string(instruction.code)});
    }
  }
  return tl::unexpected(FilterError{"filter", "ends without an answer"});
}

std::string syscall_name(std::uint32_t architecture, std::int64_t number) {
  const auto resolve = [](std::uint32_t token, int call) {
    char* text = ::seccomp_syscall_resolve_num_arch(token, call);
    std::string name = text == nullptr ? std::string() : text;
    std::free(text);
    return name;
  };
  const int call = static_cast<int>(number);
  if (architecture == AUDIT_ARCH_I386) {
    const std::string name = resolve(SCMP_ARCH_X86, call);
    return "i386:" + (name.empty() ? std::to_string(number) : name);
  }
  if (architecture != AUDIT_ARCH_X86_64) return "foreign:" + std::to_string(number);
  if (number >= kX32Bit && number < kNoCall) {
    const std::string name = resolve(SCMP_ARCH_X86_64, static_cast<int>(number - kX32Bit));
    return "x32:" + (name.empty() ? std::to_string(number - kX32Bit) : name);
  }
  const std::string name = resolve(SCMP_ARCH_X86_64, call);
  return name.empty() ? "syscall " + std::to_string(number) : name;
}

}  // namespace fixpoint::sandbox::detail
