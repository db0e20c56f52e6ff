#include "evals/detail/output_folder.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "evals/detail/rows.h"
#include "evals/result_log.h"

namespace fixpoint::evals::detail {
namespace {

using sandbox::Value;

constexpr std::string_view kEdition = "fixpoint canonical outputs 1\n";
constexpr std::size_t kHashBytes = 64;

/// kEdition, the hash of the rest, the rest: what it took in milliseconds, Digests, and both rows of outputs.
std::string text_of(const CanonicalOutputs& outputs) {
  const std::string body = encode(Value::tuple_of({Value::of(static_cast<std::int64_t>(outputs.wall.count())), Value::of(static_cast<int>(outputs.digests)),
                                                   Value::list_of(outputs.base), Value::list_of(outputs.plus)}));
  return std::string(kEdition) + sha256_hex(body) + body;
}

std::optional<CanonicalOutputs> parse(std::string_view text, std::size_t base, std::size_t plus) {
  if (!text.starts_with(kEdition)) return std::nullopt;
  text.remove_prefix(kEdition.size());
  if (text.size() < kHashBytes || sha256_hex(text.substr(kHashBytes)) != text.substr(0, kHashBytes)) return std::nullopt;
  auto whole = sandbox::decode(text.substr(kHashBytes));
  if (!whole || whole->items.size() != 4) return std::nullopt;
  CanonicalOutputs out;
  out.wall = std::chrono::milliseconds(std::strtoll(whole->items[0].text.c_str(), nullptr, 10));
  out.digests = static_cast<Digests>(std::strtol(whole->items[1].text.c_str(), nullptr, 10));
  out.base = std::move(whole->items[2].items);
  out.plus = std::move(whole->items[3].items);
  if (out.digests > Digests::all || out.base.size() != base || out.plus.size() != plus) return std::nullopt;
  return out;
}

}  // namespace

std::filesystem::path OutputFolder::file_of(const Task& task, const Differential& tests) const {
  // With what reduces its outputs, so that other rules make another file.
  std::string source = task.reference;
  std::string names;
  for (const Digests digests : {Digests::texts, Digests::all}) names += called_name(task, {tests.oracle, true, digests}, source) + ' ';
  std::string all;
  for (const std::string& part : {interpreter_, names, source, encode(Value::list_of(tests.base)), encode(Value::list_of(tests.plus))}) {
    all += std::to_string(part.size()) + ':' + part;
  }
  return folder_ / (sha256_hex(all) + ".outputs");
}

std::optional<CanonicalOutputs> OutputFolder::find(const Task& task, const Differential& tests) const {
  std::ifstream file(file_of(task, tests), std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse(text, tests.base.size(), tests.plus.size());
}

tl::expected<void, std::string> OutputFolder::keep(const Task& task, const Differential& tests, const CanonicalOutputs& outputs) const {
  const std::string text = text_of(outputs);
  if (!parse(text, tests.base.size(), tests.plus.size())) return {};
  return write_whole(file_of(task, tests), text);
}

}  // namespace fixpoint::evals::detail
