#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/thread_team.h"

namespace fixpoint::kernels::cpu {

/// Memory for packed weights in large pages: many weights share a chunk, which lives as long as one of them.
class WeightArena {
 public:
  struct Slice {
    std::shared_ptr<const Buffer> chunk;
    std::byte* data = nullptr;
  };
  /// Zeroed, on a cache line.
  [[nodiscard]] Slice take(std::int64_t bytes);

 private:
  std::shared_ptr<Buffer> chunk_;
  std::int64_t used_ = 0;
};

/// Panels of one matrix of the stack.
struct PackedPart {
  DType type;
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t num_panels;
  std::int64_t panel_bytes;
  const std::byte* panels;

  /// Outputs in panel `i`.
  [[nodiscard]] int lanes(std::int64_t i) const;
};

class PackedWeight final : public Weight {
 public:
  PackedWeight(std::span<const Tensor> parts, bool bf16_pairs, WeightArena& arena, ThreadTeam& team);
  /// Of panels that are packed already: packed_bytes(parts) on a cache line, which outlive it.
  PackedWeight(std::span<const Tensor> parts, bool bf16_pairs, const std::byte* panels);

  [[nodiscard]] static std::int64_t packed_bytes(std::span<const Tensor> parts);
  [[nodiscard]] const std::vector<PackedPart>& parts() const { return parts_; }
  [[nodiscard]] std::span<const std::byte> packed() const override;
  void unpack_row(std::int64_t row, float* to) const;

 private:
  void lay_out(std::span<const Tensor> parts, const std::byte* panels);
  void pack(const Tensor& from, const PackedPart& part, std::byte* to, ThreadTeam& team) const;

  bool bf16_pairs_;
  std::vector<PackedPart> parts_;
  std::shared_ptr<const Buffer> memory_;  ///< null where the panels are somebody else's
};

}  // namespace fixpoint::kernels::cpu
