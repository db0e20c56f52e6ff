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

Code answer(Action action, bool notify) { return {statement(BPF_RET | BPF_K, filter_answer(action, notify))}; }

/// The low word of argument `index`; x86-64 is little-endian.
std::uint32_t argument_offset(std::uint8_t index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + sizeof(__u64) * index);
}

/// All rules of one call in order; falls through to ENOSYS.
Code call_code(const std::vector<const SyscallRule*>& rules, bool notify) {
  Code code;
  for (const SyscallRule* rule : rules) {
    Code block;
    // A failed test jumps over the rest of its rule: three instructions for each later test, and the answer.
    for (std::size_t i = 0; i < rule->tests.size(); ++i) {
      const ArgumentTest& test = rule->tests[i];
      block.push_back(statement(BPF_LD | BPF_W | BPF_ABS, argument_offset(test.index)));
      block.push_back(statement(BPF_ALU | BPF_AND | BPF_K, test.mask));
      block.push_back(jump(BPF_JEQ, test.value, 0, (rule->tests.size() - 1 - i) * 3 + 1));
    }
    append(block, answer(rule->action, notify));
    append(code, block);
    if (rule->tests.empty()) return code;
  }
  append(code, answer(Action::enosys, notify));
  return code;
}

/// Numbers from `first` up to the next range's first are answered by `code`.
struct Range {
  std::uint32_t first = 0;
  Code code;
};

bool same(const Code& a, const Code& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(BpfInstruction)) == 0;
}

Code search(const Range* first, const Range* last) {
  if (last - first == 1) return first->code;
  const Range* middle = first + (last - first) / 2;
  const Code low = search(first, middle);
  const Code high = search(middle, last);
  Code code;
  if (low.size() <= 255) {
    code.push_back(jump(BPF_JGE, middle->first, low.size(), 0));
  } else {  // conditional jumps reach 255 instructions, unconditional ones any distance
    code.push_back(jump(BPF_JGE, middle->first, 0, 1));
    code.push_back(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(low.size())));
  }
  append(code, low);
  append(code, high);
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
  const Code unknown = answer(Action::enosys, notify);
  std::vector<Range> ranges{{0, unknown}};
  const auto add = [&ranges](std::uint32_t first, const Code& code) {
    if (ranges.back().first == first) {
      ranges.back().code = code;
      if (ranges.size() > 1 && same(ranges[ranges.size() - 2].code, code)) ranges.pop_back();
    } else if (!same(ranges.back().code, code)) {
      ranges.push_back({first, code});
    }
  };
  for (const auto& [number, rules] : calls) {
    add(number, call_code(rules, notify));
    add(number + 1, unknown);
  }
  add(kX32Bit, answer(Action::deny, notify));
  add(kNoCall, unknown);

  Code filter;
  filter.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  filter.push_back(jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0));
  append(filter, answer(Action::deny, notify));
  filter.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  append(filter, search(ranges.data(), ranges.data() + ranges.size()));
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
