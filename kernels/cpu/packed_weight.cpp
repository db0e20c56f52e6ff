#include "kernels/cpu/packed_weight.h"

#include <algorithm>

#include "kernels/cpu/huge_pages.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/panel_layout.h"

namespace fixpoint::kernels::cpu {
namespace {

std::int64_t num_panels(const Tensor& matrix) { return (matrix.rows() + kLanes - 1) / kLanes; }

}  // namespace

WeightArena::Slice WeightArena::take(std::int64_t bytes) {
  constexpr std::int64_t kChunk = std::int64_t{64} << 20;
  if (bytes > kChunk / 2) {
    auto own = std::make_shared<Buffer>(allocate_huge(static_cast<std::size_t>(bytes)));
    return {own, own->data()};
  }
  if (chunk_ == nullptr || used_ + bytes > kChunk) {
    chunk_ = std::make_shared<Buffer>(allocate_huge(kChunk));
    used_ = 0;
  }
  std::byte* data = chunk_->data() + used_;
  used_ += (bytes + 63) / 64 * 64;
  return {chunk_, data};
}

int PackedPart::lanes(std::int64_t i) const {
  return static_cast<int>(std::min<std::int64_t>(kLanes, rows - i * kLanes));
}

PackedWeight::PackedWeight(std::span<const Tensor> parts, bool bf16_pairs, WeightArena& arena, ThreadTeam& team)
    : bf16_pairs_(bf16_pairs) {
  const WeightArena::Slice slice = arena.take(packed_bytes(parts));
  memory_ = slice.chunk;
  lay_out(parts, slice.data);
  for (std::size_t i = 0; i < parts.size(); ++i) pack(parts[i], parts_[i], slice.data + (parts_[i].panels - slice.data), team);
}

PackedWeight::PackedWeight(std::span<const Tensor> parts, bool bf16_pairs, const std::byte* panels) : bf16_pairs_(bf16_pairs) {
  lay_out(parts, panels);
}

void PackedWeight::lay_out(std::span<const Tensor> parts, const std::byte* panels) {
  cols_ = parts[0].shape[1];
  for (const Tensor& part : parts) {
    parts_.push_back({part.dtype, rows_, part.rows(), num_panels(part), cpu::panel_bytes(part.dtype, cols_), panels + bytes_});
    rows_ += part.rows();
    bytes_ += parts_.back().num_panels * parts_.back().panel_bytes;
  }
}

std::int64_t PackedWeight::packed_bytes(std::span<const Tensor> parts) {
  std::int64_t bytes = 0;
  for (const Tensor& part : parts) bytes += num_panels(part) * cpu::panel_bytes(part.dtype, part.shape[1]);
  return bytes;
}

std::span<const std::byte> PackedWeight::packed() const { return {parts_.front().panels, static_cast<std::size_t>(bytes_)}; }

void PackedWeight::pack(const Tensor& from, const PackedPart& part, std::byte* to, ThreadTeam& team) const {
  constexpr std::int64_t kPanelsPerTask = 16;
  const std::int64_t file_row = row_bytes(part.type, cols_);
  team.run((part.num_panels + kPanelsPerTask - 1) / kPanelsPerTask, [&](std::int64_t task, int) {
    const std::int64_t end = std::min(part.num_panels, (task + 1) * kPanelsPerTask);
    for (std::int64_t p = task * kPanelsPerTask; p < end; ++p) {
      pack_panel({part.type, from.data + p * kLanes * file_row, part.lanes(p), cols_, bf16_pairs_},
                 to + p * part.panel_bytes);
    }
  });
}

void PackedWeight::unpack_row(std::int64_t row, float* to) const {
  const auto part = std::ranges::find_if(parts_, [&](const PackedPart& p) { return row < p.first_row + p.rows; });
  const std::int64_t local = row - part->first_row;
  cpu::unpack_row(part->type, bf16_pairs_, part->panels + local / kLanes * part->panel_bytes,
                  static_cast<int>(local % kLanes), cols_, to);
}

}  // namespace fixpoint::kernels::cpu
