#pragma once

#include <array>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_team.h"

namespace fixpoint::kernels::cpu {

/// Matrix products with packed weights: brings the rows of x into the forms that the weight's types need, once, then
/// hands out groups of panels; a group goes past all rows while it is in the cache, some columns at a time, so that the
/// rows' part stays close too.
class Products {
 public:
  Products(const KernelTable& table, ThreadTeam& team) : table_(table), team_(team) {}
  void multiply(const Tensor& x, const PackedWeight& w, const float* bias, const Tensor& out);

 private:
  /// Rows of x that a kernel computes together.
  struct Tile {
    std::int64_t first_row;
    int valid_rows;
    int kernel;  ///< index into ProductKernels::kernels
    int rows;    ///< of the kernel: valid_rows or a few more
    std::int64_t offset;  ///< of the stored rows, bytes
  };
  struct Form {
    std::vector<Tile> tiles;
    Scratch rows;
    std::byte* data = nullptr;
    bool ready = false;
  };
  /// Consecutive panels of a part.
  struct Group {
    const PackedPart* part;
    std::int64_t first_panel;
    std::int64_t num_panels;
    std::int64_t columns;  ///< taken together
  };

  void plan_groups(const PackedWeight& w, std::int64_t rows);
  void store_rows(const Tensor& x, const ProductKernels& kernels);
  void multiply_group(const Group& group, const float* bias, std::int64_t cols, const Tensor& out);

  const KernelTable& table_;
  ThreadTeam& team_;
  std::array<Form, kNumRowForms> forms_;
  std::vector<Group> groups_;
};

}  // namespace fixpoint::kernels::cpu
