#include "tests/engine/serving/fake_model.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>

#include "engine/counter_rng.h"
#include "engine/detail/logit_scan.h"
#include "tests/kernels/plain_choice.h"

namespace fixpoint::engine::testing {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void FakeModel::allocate_kv(int num_blocks, int block_size, kernels::KvType) {
  block_size_ = block_size;
  slots_.assign(at(num_blocks) * at(block_size), Slot{});
}

void FakeModel::copy_blocks(std::span<const kernels::BlockCopy> copies) {
  for (const auto& copy : copies) {
    std::copy_n(slots_.begin() + static_cast<std::int64_t>(copy.from) * block_size_, block_size_,
                slots_.begin() + static_cast<std::int64_t>(copy.to) * block_size_);
  }
}

void FakeModel::write(const StepInput& input, std::int32_t sequence) {
  const auto& batch = input.batch;
  const auto first_block = at(batch.block_indptr[at(sequence)]);
  for (std::int32_t row = batch.q_indptr[at(sequence)]; row < batch.q_indptr[at(sequence) + 1]; ++row) {
    const std::int32_t position = batch.positions[at(row)];
    const std::int32_t block = batch.block_ids[first_block + at(position / block_size_)];
    Slot& slot = slots_.at(at(block) * at(block_size_) + at(position % block_size_));
    if (slot.written_in == step_) throw std::logic_error("block " + std::to_string(block) + " was written twice in a step");
    slot = {input.tokens[at(row)], position, step_};
  }
}

std::vector<TokenId> FakeModel::context_of(const kernels::PagedBatch& batch, std::int32_t sequence, std::int32_t length) const {
  std::vector<TokenId> context;
  const auto first_block = at(batch.block_indptr[at(sequence)]);
  for (std::int32_t position = 0; position < length; ++position) {
    const std::int32_t block = batch.block_ids[first_block + at(position / block_size_)];
    const Slot& slot = slots_.at(at(block) * at(block_size_) + at(position % block_size_));
    if (slot.position != position) {
      throw std::logic_error("block " + std::to_string(block) + " holds position " + std::to_string(slot.position) + " where " +
                             std::to_string(position) + " was expected");
    }
    context.push_back(slot.token);
  }
  return context;
}

void FakeModel::fill_row(std::span<const TokenId> context, std::span<float> row) const {
  std::uint64_t hash = context.size();
  for (const TokenId token : context) hash = mix64(hash ^ static_cast<std::uint64_t>(token));
  for (std::size_t v = 0; v < row.size(); ++v) {
    row[v] = v < at(shape_.vocab) ? static_cast<float>(mix64(hash + v) >> 40U) * 0x1.0p-21F - 4.0F : 1000.0F;
  }
}

StepOutput FakeModel::forward(const StepInput& input) {
  ++step_;
  if (on_forward) on_forward(input);
  const auto& batch = input.batch;
  for (std::int32_t s = 0; s < batch.num_seqs(); ++s) write(input, s);
  const auto width = at(vocab_size());
  logits_.resize(input.logit_rows.size() * width);
  std::int32_t s = 0;
  for (std::size_t i = 0; i < input.logit_rows.size(); ++i) {
    const std::int32_t row = input.logit_rows[i];
    while (batch.q_indptr[at(s) + 1] <= row) ++s;
    const auto context = context_of(batch, s, batch.positions[at(row)] + 1);
    const std::span<float> out(logits_.data() + i * width, width);
    fill_row(context, out);
    if (on_row) on_row(context, out);
    work_.kv_bytes += context.size() * 8;
  }
  work_.flops += input.tokens.size() * 1000;
  work_.weight_bytes += 4096;
  return output(input);
}

StepOutput FakeModel::output(const StepInput& input) {
  chosen_.clear();
  stated_choices += static_cast<int>(input.choices.size());
  if (!chooses) return {logits_, chosen_};
  const auto width = static_cast<std::ptrdiff_t>(vocab_size());
  for (const kernels::RowChoice& choice : input.choices) {
    const std::span<const float> row(logits_.data() + choice.row * width, at(width));
    chosen_.push_back(kernels::plain_choice(row, choice, detail::token_weight));
  }
  for (auto choice = input.choices.rbegin(); choice != input.choices.rend(); ++choice) {
    const auto row = logits_.begin() + choice->row * width;
    logits_.erase(row, row + width);
  }
  chosen_rows += static_cast<int>(chosen_.size());
  return {logits_, chosen_};
}

void FakeModel::share(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&](int thread) {
    for (std::int64_t task = next++; task < tasks; task = next++) body(task, thread);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  others.clear();  // joins
  shared_tasks += static_cast<int>(tasks);
}

std::vector<float> FakeModel::logits_after(std::span<const TokenId> tokens) const {
  std::vector<float> row(at(vocab_size()));
  fill_row(tokens, row);
  return row;
}

std::vector<TokenId> FakeModel::continue_greedily(std::vector<TokenId> prompt, int n, TokenId stop) const {
  std::vector<TokenId> output;
  while (static_cast<int>(output.size()) < n) {
    const auto row = logits_after(prompt);
    const auto best = std::max_element(row.begin(), row.begin() + shape_.vocab) - row.begin();
    output.push_back(static_cast<TokenId>(best));
    if (output.back() == stop) break;
    prompt.push_back(output.back());
  }
  return output;
}

}  // namespace fixpoint::engine::testing
