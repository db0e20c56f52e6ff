#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sandbox/policy.h"

namespace fixpoint::sandbox::detail {

/// One instruction of classic BPF (the kernel's struct sock_filter).
struct BpfInstruction {
  std::uint16_t code = 0;
  std::uint8_t jump_true = 0;
  std::uint8_t jump_false = 0;
  std::uint32_t operand = 0;

  [[nodiscard]] std::uint64_t packed() const;
};

/// What a filter looks at (struct seccomp_data).
struct SyscallData {
  std::int32_t number = 0;
  std::uint32_t architecture = 0;
  std::uint64_t instruction_pointer = 0;
  std::uint64_t arguments[6] = {};
};

/// What a filter answers for `action`. `notify`: a denied call goes to the run's init, which reports its name; without, the
/// kernel kills the process.
[[nodiscard]] std::uint32_t filter_answer(Action action, bool notify);

struct FilterError {
  std::string call;
  std::string detail;
};

/// Compiles a policy to a filter: architecture first, then a binary search over ranges of call numbers with equal answers,
/// because the kernel runs a filter once for each number when it is loaded; linear filters make that the largest part of a
/// launch. libseccomp resolves the names; an unknown name is an error. On x86-64 only.
[[nodiscard]] tl::expected<std::vector<BpfInstruction>, FilterError> compile_filter(const SyscallPolicy& policy,
                                                                                    bool notify);

/// Runs a filter as the kernel does. Empty where it jumps out of itself or does not end.
[[nodiscard]] tl::expected<std::uint32_t, FilterError> evaluate_filter(const std::vector<BpfInstruction>& filter,
                                                                       const SyscallData& data);

/// "ptrace", "i386:20", "x32:1", "syscall 999"
[[nodiscard]] std::string syscall_name(std::uint32_t architecture, std::int64_t number);

}  // namespace fixpoint::sandbox::detail
