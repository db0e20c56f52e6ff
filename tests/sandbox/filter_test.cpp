#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "sandbox/detail/seccomp_filter.h"

namespace fixpoint::sandbox::detail {
namespace {

class FilterTest : public testing::TestWithParam<Language> {};
INSTANTIATE_TEST_SUITE_P(Languages, FilterTest, testing::ValuesIn(kLanguages),
                         [](const auto& chosen) { return std::string(name(chosen.param)); });

int number_of(std::string_view call) {
  static std::map<std::string_view, int> known;
  const auto [entry, added] = known.try_emplace(call, 0);
  if (added) entry->second = seccomp_syscall_resolve_name(std::string(call).c_str());
  return entry->second;
}

/// What the policy says, read directly.
Action meant(const SyscallPolicy& policy, const SyscallData& data) {
  if (data.architecture != AUDIT_ARCH_X86_64) return Action::deny;
  const auto number = static_cast<std::uint32_t>(data.number);
  if (number >= 0x40000000 && number != 0xffffffff) return Action::deny;
  for (const SyscallRule& rule : policy.rules) {
    if (number_of(rule.call) != data.number) continue;
    const bool matches = std::all_of(rule.tests.begin(), rule.tests.end(), [&data](const ArgumentTest& test) {
      return (static_cast<std::uint32_t>(data.arguments[test.index]) & test.mask) == test.value;
    });
    if (matches) return rule.action;
  }
  return Action::enosys;
}

std::vector<std::int32_t> interesting_numbers() {
  std::vector<std::int32_t> numbers;
  for (std::int32_t number = 0; number < 1100; ++number) numbers.push_back(number);
  for (const std::uint32_t number : {0x3fffffffU, 0x40000000U, 0x40000001U, 0x400001ffU, 0x7fffffffU, 0x80000000U,
                                     0xfffffffeU, 0xffffffffU}) {
    numbers.push_back(static_cast<std::int32_t>(number));
  }
  return numbers;
}

/// Argument values on both sides of every test, with and without high bits.
std::vector<std::uint64_t> interesting_arguments(const SyscallPolicy& policy) {
  std::vector<std::uint64_t> values{0, 1, 2, ~0ULL, 0xffffffff, 1ULL << 32};
  for (const SyscallRule& rule : policy.rules) {
    for (const ArgumentTest& test : rule.tests) {
      const std::uint64_t value = test.value;
      for (const std::uint64_t near : {value, value + 1, value - 1, value | std::uint64_t{1} << 40}) values.push_back(near);
      values.push_back(test.mask);
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

TEST_P(FilterTest, AnswersWhatThePolicySays) {
  const SyscallPolicy policy = syscall_policy(GetParam());
  for (const bool notify : {true, false}) {
    const auto filter = compile_filter(policy, notify);
    ASSERT_TRUE(filter.has_value());
    std::mt19937_64 random(1);
    for (const std::uint32_t architecture : std::initializer_list<std::uint32_t>{AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, 0}) {
      for (const std::int32_t number : interesting_numbers()) {
        SyscallData data{number, architecture, random(), {}};
        for (const int shift : {0, 32, 63}) {
          const auto answer = evaluate_filter(*filter, data);
          ASSERT_TRUE(answer.has_value()) << number;
          ASSERT_EQ(*answer, filter_answer(meant(policy, data), notify)) << number << " on " << architecture;
          for (std::uint64_t& argument : data.arguments) argument = random() >> shift;
        }
      }
    }
  }
}

TEST_P(FilterTest, AnswersWhatThePolicySaysForEveryArgumentOnBothSidesOfATest) {
  const SyscallPolicy policy = syscall_policy(GetParam());
  const auto filter = compile_filter(policy, true);
  ASSERT_TRUE(filter.has_value());
  const std::vector<std::uint64_t> values = interesting_arguments(policy);
  for (const SyscallRule& rule : policy.rules) {
    for (const ArgumentTest& test : rule.tests) {
      SyscallData data{number_of(rule.call), AUDIT_ARCH_X86_64, 0, {}};
      for (const std::uint64_t value : values) {
        for (const std::uint64_t other : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{4}}) {
          for (std::uint64_t& argument : data.arguments) argument = other;
          data.arguments[test.index] = value;
          ASSERT_EQ(*evaluate_filter(*filter, data), filter_answer(meant(policy, data), true))
              << rule.call << " " << value << " " << other;
        }
      }
    }
  }
}

/// The same policy through libseccomp, as far as its rules can say it: calls without tests exactly, others by what is allowed.
std::vector<BpfInstruction> through_libseccomp(const SyscallPolicy& policy) {
  const scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  std::map<std::string_view, bool> tested;
  for (const SyscallRule& rule : policy.rules) tested[rule.call] = tested[rule.call] || !rule.tests.empty();
  const auto action = [](Action wanted) -> std::uint32_t {
    switch (wanted) {
      case Action::allow: return SCMP_ACT_ALLOW;
      case Action::refuse: return SCMP_ACT_ERRNO(EPERM);
      case Action::no_family: return SCMP_ACT_ERRNO(EAFNOSUPPORT);
      case Action::no_terminal: return SCMP_ACT_ERRNO(ENOTTY);
      case Action::deny: return SCMP_ACT_NOTIFY;
      case Action::enosys: break;
    }
    return SCMP_ACT_ERRNO(ENOSYS);
  };
  for (const SyscallRule& rule : policy.rules) {
    if (rule.action == Action::enosys) continue;
    if (tested[rule.call] && rule.action != Action::allow) continue;
    std::vector<scmp_arg_cmp> tests;
    for (const ArgumentTest& test : rule.tests) {
      tests.push_back({test.index, SCMP_CMP_MASKED_EQ, test.mask, test.value});
    }
    const int added = seccomp_rule_add_array(context, action(rule.action), number_of(rule.call),
                                             static_cast<unsigned>(tests.size()), tests.data());
    EXPECT_EQ(added, 0) << rule.call;
  }
  const int file = ::memfd_create("filter", MFD_CLOEXEC);
  EXPECT_EQ(seccomp_export_bpf(context, file), 0);
  seccomp_release(context);
  std::vector<BpfInstruction> filter(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)) / sizeof(BpfInstruction));
  const auto size = static_cast<ssize_t>(filter.size() * sizeof(BpfInstruction));
  EXPECT_EQ(::pread(file, filter.data(), static_cast<std::size_t>(size), 0), size);
  ::close(file);
  return filter;
}

TEST_P(FilterTest, AgreesWithLibseccomp) {
  const SyscallPolicy policy = syscall_policy(GetParam());
  const auto ours = compile_filter(policy, true);
  ASSERT_TRUE(ours.has_value());
  const std::vector<BpfInstruction> theirs = through_libseccomp(policy);
  std::map<int, bool> tested, refused_before;
  for (const SyscallRule& rule : policy.rules) {
    const int number = number_of(rule.call);
    tested[number] = tested[number] || !rule.tests.empty();
    // libseccomp has no order of rules: where a test refuses what a later rule allows, it cannot say the same.
    if (!rule.tests.empty() && rule.action != Action::allow) refused_before[number] = true;
  }
  const std::vector<std::uint64_t> values = interesting_arguments(policy);
  for (std::int32_t number = 0; number < 1100; ++number) {
    SyscallData data{number, AUDIT_ARCH_X86_64, 0, {}};
    for (const std::uint64_t value : tested[number] ? values : std::vector<std::uint64_t>{0, ~0ULL}) {
      for (std::uint64_t& argument : data.arguments) argument = value;
      const auto our = evaluate_filter(*ours, data);
      const auto their = evaluate_filter(theirs, data);
      ASSERT_TRUE(our.has_value() && their.has_value()) << number;
      if (!tested[number]) {
        ASSERT_EQ(*our, *their) << number;
      } else if (!refused_before[number]) {
        ASSERT_EQ(*our == SECCOMP_RET_ALLOW, *their == SECCOMP_RET_ALLOW) << number << " " << value;
      }
    }
  }
}

/// The kernel translates it anew for each program: a microsecond an instruction where that is dear.
TEST(FilterTest, IsShort) {
  for (const Language language : kLanguages) {
    const auto filter = compile_filter(syscall_policy(language), true);
    ASSERT_TRUE(filter.has_value());
    EXPECT_LT(filter->size(), 256U) << name(language);
  }
}

TEST(FilterTest, LongPoliciesAreCutIntoBlocksThatJumpsReachOver) {
  SyscallPolicy policy;
  // "write" has more tests than a single conditional jump crosses together with its neighbours.
  for (std::uint32_t value = 0; value < 200; ++value) policy.rules.push_back({"write", Action::allow, {{0, ~0U, value * 3}}});
  for (std::uint32_t value = 0; value < 90; ++value) {
    policy.rules.push_back({"close", Action::refuse, {{0, 0xff, value}, {1, ~0U, value}}});
  }
  policy.rules.push_back({"close", Action::deny});
  const auto filter = compile_filter(policy, true);
  ASSERT_FALSE(filter.has_value());  // ninety loads and two tests each do not fit
  EXPECT_EQ(filter.error().call, "filter");
  std::erase_if(policy.rules, [](const SyscallRule& rule) { return rule.call == "close" && rule.tests.size() == 2 && rule.tests[1].value >= 30; });
  const auto shorter = compile_filter(policy, true);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_GT(shorter->size(), 255U);
  for (std::int32_t number = 0; number < 5; ++number) {
    for (std::uint64_t first = 0; first < 700; ++first) {
      for (const std::uint64_t second : {first & 0xff, std::uint64_t{29}}) {
        const SyscallData data{number, AUDIT_ARCH_X86_64, 0, {first, second}};
        ASSERT_EQ(*evaluate_filter(*shorter, data), filter_answer(meant(policy, data), true)) << number << ' ' << first << ' ' << second;
      }
    }
  }
}

TEST(FilterTest, UnknownCallIsAnError) {
  const auto filter = compile_filter({{{"no_such_call", Action::allow, {}}}}, true);
  ASSERT_FALSE(filter.has_value());
  EXPECT_EQ(filter.error().call, "no_such_call");
}

TEST(FilterTest, ForeignInterfacesAreNamed) {
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 101), "ptrace");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_I386, 20), "i386:getpid");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 0x40000000 + 39), "x32:getpid");
  EXPECT_EQ(syscall_name(AUDIT_ARCH_X86_64, 999), "syscall 999");
}

TEST(FilterTest, EvaluatorRefusesProgramsThatLeaveThemselves) {
  EXPECT_FALSE(evaluate_filter({}, {}).has_value());
  EXPECT_FALSE(evaluate_filter({{0x05, 0, 0, 100}}, {}).has_value());   // ja +100
  EXPECT_FALSE(evaluate_filter({{0x20, 0, 0, 4096}}, {}).has_value());  // ld [4096]
}

}  // namespace
}  // namespace fixpoint::sandbox::detail
