#include "evals/catalog.h"

#include <algorithm>
#include <array>

#include "evals/benchmark.h"
#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

constexpr std::string_view kHumanEval = "openai/human-eval @ 6d43fb98, data/";
constexpr std::string_view kMbpp = "google-research, mbpp/ (mbpp.jsonl; the copy in deepseek-ai/DeepSeek-Coder @ 2f9fd859, Evaluation/MBPP/data/)";
constexpr std::string_view kSanitized = "google-research, mbpp/ (sanitized-mbpp.json; the copy in patdfb/TPC-EES @ 30c8c572, mbpp/)";
constexpr std::string_view kHumanEvalPlus = "evalplus/humanevalplus_release @ 200defce";
constexpr std::string_view kMbppPlus = "evalplus/mbppplus_release @ dadf43da";
constexpr std::string_view kMultiplE = "nuprl/MultiPL-E; the copy in bytedance/SandboxFusion @ 469de084, sandbox/tests/datasets/samples/Multi-PLE/";
constexpr std::string_view kLdb = "FloridSleeves/LLMDebugger @ 49ac191f, input_data/";
constexpr std::string_view kSamples = "bytedance/SandboxFusion @ 469de084, sandbox/tests/datasets/samples/ (samples of the format)";

constexpr std::string_view kMit = "MIT";
constexpr std::string_view kApache = "Apache-2.0";
constexpr std::string_view kBsd = "BSD-3-Clause with a no-training clause";

constexpr std::array<KnownFile, 16> kFiles{{
    {"humaneval", "humaneval/HumanEval.jsonl.gz", "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef", 164, kHumanEval, kMit},
    {"mbpp", "mbpp/mbpp.jsonl", "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f", 974, kMbpp, "CC-BY-4.0"},
    {"mbpp-sanitized", "mbpp/sanitized-mbpp.json", "7fec016546acaee11dbe14f9f0bb670e59f41919f7b522a59fba34871da78551", 427, kSanitized, "CC-BY-4.0"},
    {"humaneval+", "evalplus/HumanEvalPlus.jsonl.gz", "272720b90ac375502c8ed23cd791c2a93dfb22a911641a494da74a426c09f101", 164, kHumanEvalPlus, kApache},
    {"humaneval+mini", "evalplus/HumanEvalPlus-Mini.jsonl.gz", "91486741f1627101021fbe50523df08eebb5b0bf5e804b633dcd5ca3c14dbd2f", 164, kHumanEvalPlus, kApache},
    {"mbpp+", "evalplus/MbppPlus.jsonl.gz", "af43697e8791c4c149bdfd6b489d8b5412507551ac20e28a439f650b8225db63", 378, kMbppPlus, kApache},
    {"multipl-e-humaneval-cpp", "multipl-e/humaneval-cpp.jsonl", "a1a0796d028d53cd385cb295e906f57b721181a6152ebbec9fa4efaae126c82c", 161, kMultiplE, kBsd},
    {"multipl-e-humaneval-javascript", "multipl-e/humaneval-js.jsonl", "5faa6c748fef5834526292b176ac6097b8feddc10002006fd49f12e4d193746f", 161, kMultiplE, kBsd},
    {"multipl-e-humaneval-bash", "multipl-e/humaneval-sh.jsonl", "339613e446df07743cb05fb70328d20e4f0819fc66169291c5f7cc48a65bc8c7", 158, kMultiplE, kBsd},
    {"multipl-e-mbpp-cpp", "multipl-e/mbpp-cpp.jsonl", "622a2eb6493dc0c78396553cb1575c390f1564f5027963f0322a921167f649d4", 397, kMultiplE, kBsd},
    {"multipl-e-mbpp-javascript", "multipl-e/mbpp-js.jsonl", "14d8c6c946ab9d04621c0c1bf47ac669bb90fae5807b4a6adc8c886182fa09d1", 397, kMultiplE, kBsd},
    {"ldb-humaneval", "ldb/humaneval-tests.jsonl", "7fd1fbb88159d03362b8bf8e805dfc668226a43a2933fbd288608402ce046877", 164, kLdb, kApache},
    {"ldb-mbpp", "ldb/mbpp-tests.jsonl", "bec44f036d8100d140ddf62f23eca6dd8dd3f2ded6b5fa2c4240632803d47e31", 500, kLdb, kApache},
    {"ldb-mbpp-seeds", "ldb/mbpp-seed-starcoder.jsonl", "f700cc2888ae2d2e9144ff45a8ed4a27eb20050fd4cc39dab1979ccf26d74791", 500, kLdb, kApache},
    {"livecodebench", "sandboxfusion-samples/code_eval_live_code_bench_v1.jsonl", "fb37b0318eb6fba1096341bae10ee663394c0e3e1e9a839bbcdc4ff856a2b06f", 3, kSamples, kApache},
    {"code-contests", "sandboxfusion-samples/code_eval_code_contests.jsonl", "e286e28fe9d118f34580a36627ddd4f9105d651ef81c22f4cca406c96f94ac8f", 20, kSamples, kApache},
}};

constexpr KnownFile kFamily{"family", "held_out.jsonl.gz", "300a9d137ec237ec41af750b2a3832e692d9ceeaaf440a80777af2f9bfd2bc49", 1000, "models/recipe/held_out.py --tasks 1000 --seed 4711", "part of Fixpoint"};

}  // namespace

FileReport check_file(const KnownFile& known, const std::filesystem::path& folder) {
  FileReport report{.known = &known};
  const std::filesystem::path path = folder / known.path;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    report.message = "not there: " + path.string();
    return report;
  }
  const auto bytes = detail::read_file(path);
  if (!bytes) {
    report.state = FileState::unreadable;
    report.message = bytes.error().text();
    return report;
  }
  report.sha256 = detail::sha256_hex(*bytes);
  const auto benchmark = parse_benchmark(*bytes, path);
  report.tasks = benchmark ? benchmark->tasks.size() : 0;
  if (!benchmark) {
    report.state = FileState::unreadable;
    report.message = benchmark.error().text();
  } else if (report.sha256 != known.sha256 || report.tasks != known.tasks) {
    report.state = FileState::other_bytes;
    report.message = "other bytes than the published file; " + std::to_string(report.tasks) + " tasks";
  } else {
    report.state = FileState::good;
  }
  return report;
}

const KnownFile& family_file() { return kFamily; }

std::span<const KnownFile> known_files() { return kFiles; }

const KnownFile* find_known(std::string_view benchmark) {
  const auto found = std::find_if(kFiles.begin(), kFiles.end(), [&](const KnownFile& file) { return file.benchmark == benchmark; });
  return found == kFiles.end() ? nullptr : &*found;
}

const KnownFile* find_by_hash(std::string_view sha256) {
  if (sha256 == kFamily.sha256) return &kFamily;
  const auto found = std::find_if(kFiles.begin(), kFiles.end(), [&](const KnownFile& file) { return file.sha256 == sha256; });
  return found == kFiles.end() ? nullptr : &*found;
}

std::vector<FileReport> check_files(const std::filesystem::path& folder) {
  std::vector<FileReport> out;
  for (const KnownFile& known : kFiles) out.push_back(check_file(known, folder));
  return out;
}

}  // namespace fixpoint::evals
