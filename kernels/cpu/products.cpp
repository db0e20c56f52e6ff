#include "kernels/cpu/products.h"

#include <algorithm>

namespace fixpoint::kernels::cpu {
namespace {

// What a group of panels may take of the second-level cache when many rows pass by.
constexpr std::int64_t kGroupBytes = 192 << 10;
// Enough groups that threads finish together.
constexpr std::int64_t kGroupsPerThread = 8;
constexpr std::int64_t kSmallestGroupBytes = 16 << 10;

std::int64_t row_form_bytes(RowForm form, std::int64_t cols) {
  switch (form) {
    case RowForm::f32: return (cols + kLanes - 1) / kLanes * kLanes * 4;
    case RowForm::bf16_pairs: return (cols + 2 * kLanes - 1) / (2 * kLanes) * kLanes * 4;
    case RowForm::q8: return cols / 32 * static_cast<std::int64_t>(sizeof(QuantBlock));
  }
  return 0;
}

}  // namespace

void Products::multiply(const Tensor& x, const PackedWeight& w, const float* bias, const Tensor& out) {
  if (x.rows() == 0) return;
  for (Form& form : forms_) form.ready = false;
  for (const PackedPart& part : w.parts()) {
    const ProductKernels& kernels = table_.products[static_cast<std::size_t>(part.type)];
    if (!forms_[static_cast<std::size_t>(kernels.form)].ready) store_rows(x, kernels);
  }
  plan_groups(w, x.rows());
  team_.run(static_cast<std::int64_t>(groups_.size()), [&](std::int64_t task, int) {
    multiply_group(groups_[static_cast<std::size_t>(task)], bias, w.cols(), out);
  });
}

void Products::plan_groups(const PackedWeight& w, std::int64_t rows) {
  groups_.clear();
  const std::int64_t wanted = kGroupsPerThread * team_.size();
  const std::int64_t even = w.bytes() / wanted;
  const std::int64_t bytes = std::clamp(even, std::min(kSmallestGroupBytes / rows, kGroupBytes), kGroupBytes);
  for (const PackedPart& part : w.parts()) {
    std::int64_t panels = std::max<std::int64_t>(1, bytes / part.panel_bytes);
    if (panels > 4) panels = panels / 4 * 4;  // kernels take up to four panels at a time
    for (std::int64_t p = 0; p < part.num_panels; p += panels) {
      groups_.push_back({&part, p, std::min(panels, part.num_panels - p)});
    }
  }
}

void Products::store_rows(const Tensor& x, const ProductKernels& kernels) {
  Form& form = forms_[static_cast<std::size_t>(kernels.form)];
  const auto sizes_end = std::ranges::find(kernels.sizes, 0);
  const int largest = *(sizes_end - 1);
  const std::int64_t cols = x.row_elements();
  const std::int64_t row = row_form_bytes(kernels.form, cols);
  const std::int64_t count = (x.rows() + largest - 1) / largest;
  form.tiles.clear();
  std::int64_t offset = 0;
  for (std::int64_t i = 0, first = 0; i < count; ++i) {
    const auto valid = static_cast<int>(x.rows() / count + (i < x.rows() % count ? 1 : 0));
    const auto size = std::ranges::find_if(kernels.sizes, [&](int s) { return s >= valid; });
    form.tiles.push_back({first, valid, static_cast<int>(size - kernels.sizes.begin()), *size, offset});
    offset += *size * row;
    first += valid;
  }
  form.data = form.rows.at_least(offset);
  const auto store = table_.store_rows[static_cast<std::size_t>(kernels.form)];
  const auto store_tile = [&](std::int64_t i, int) {
    const Tile& tile = form.tiles[static_cast<std::size_t>(i)];
    store({x.row(tile.first_row), x.row_stride, cols, tile.valid_rows, tile.rows, form.data + tile.offset});
  };
  if (x.rows() * cols < 16384) {
    for (std::int64_t i = 0; i < count; ++i) store_tile(i, 0);
  } else {
    team_.run(count, store_tile);
  }
  form.ready = true;
}

void Products::multiply_group(const Group& group, const float* bias, std::int64_t cols, const Tensor& out) {
  const PackedPart& part = *group.part;
  const ProductKernels& kernels = table_.products[static_cast<std::size_t>(part.type)];
  const Form& form = forms_[static_cast<std::size_t>(kernels.form)];
  const std::int64_t first_output = part.first_row + group.first_panel * kLanes;
  PanelProduct call{};
  call.panels = part.panels + group.first_panel * part.panel_bytes;
  call.panel_bytes = part.panel_bytes;
  call.num_panels = group.num_panels;
  call.cols = cols;
  call.last_lanes = part.lanes(group.first_panel + group.num_panels - 1);
  call.out_stride = out.row_stride;
  call.bias = bias != nullptr ? bias + first_output : nullptr;
  for (const Tile& tile : form.tiles) {
    call.x = form.data + tile.offset;
    call.valid_rows = tile.valid_rows;
    call.out = out.row(tile.first_row) + first_output;
    kernels.kernels[static_cast<std::size_t>(tile.kernel)](call);
  }
}

}  // namespace fixpoint::kernels::cpu
