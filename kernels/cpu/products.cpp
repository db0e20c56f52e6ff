#include "kernels/cpu/products.h"

#include <algorithm>

namespace fixpoint::kernels::cpu {
namespace {

// What a group of panels may take of the second-level cache while rows pass by, and a tile of rows of the first.
constexpr std::int64_t kGroupBytes = 192 << 10;
constexpr std::int64_t kTileBytes = 24 << 10;
// Enough groups that threads finish together.
constexpr std::int64_t kGroupsPerThread = 6;
// With few rows a group is handed out for this much weight memory at least.
constexpr std::int64_t kSmallestGroupBytes = 16 << 10;
// Kernels of plain types take two or four panels at a time.
constexpr std::int64_t kPanelsTogether = 4;

std::int64_t row_form_bytes(RowForm form, std::int64_t cols) {
  switch (form) {
    case RowForm::f32: return (cols + kLanes - 1) / kLanes * kLanes * 4;
    case RowForm::bf16_pairs: return (cols + 2 * kLanes - 1) / (2 * kLanes) * kLanes * 4;
    case RowForm::q8: return cols / 32 * static_cast<std::int64_t>(sizeof(QuantBlock));
  }
  return 0;
}

// Of `rows`, as evenly as can be.
int rows_of_tile(std::int64_t rows, std::int64_t tiles, std::int64_t i) {
  return static_cast<int>(rows / tiles + (i < rows % tiles ? 1 : 0));
}

// The one for the fewest rows that has room for `valid`.
std::size_t smallest_kernel(const ProductKernels& kernels, int valid) {
  return static_cast<std::size_t>(std::ranges::find_if(kernels.sizes, [&](int s) { return s >= valid; }) - kernels.sizes.begin());
}

std::int64_t rows_with_padding(const ProductKernels& kernels, std::int64_t rows, std::int64_t tiles) {
  const auto size = [&](std::int64_t i) { return kernels.sizes[smallest_kernel(kernels, rows_of_tile(rows, tiles, i))]; };
  const std::int64_t larger = rows % tiles;
  return larger * size(0) + (tiles - larger) * size(tiles - 1);
}

// As few tiles as can be, or one more where that computes fewer rows that nobody wants: 18 rows are three tiles of 6, not two of 12.
std::int64_t tile_count(const ProductKernels& kernels, std::int64_t rows) {
  const std::int64_t largest = *(std::ranges::find(kernels.sizes, 0) - 1);
  const std::int64_t fewest = (rows + largest - 1) / largest;
  return rows_with_padding(kernels, rows, fewest + 1) < rows_with_padding(kernels, rows, fewest) ? fewest + 1 : fewest;
}

// Columns that a group is multiplied with before the next ones; all of them when there is one tile of rows.
std::int64_t columns_together(RowForm form, int tile_rows, std::int64_t cols, std::int64_t rows) {
  if (rows <= tile_rows) return cols;
  const std::int64_t fit = cols * kTileBytes / std::max<std::int64_t>(1, tile_rows * row_form_bytes(form, cols));
  const std::int64_t parts = (cols + std::max(fit, kColumnStep) - 1) / std::max(fit, kColumnStep);
  return ((cols + parts - 1) / parts + kColumnStep - 1) / kColumnStep * kColumnStep;
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
  for (const PackedPart& part : w.parts()) {
    const RowForm form = table_.products[static_cast<std::size_t>(part.type)].form;
    const std::int64_t columns = columns_together(form, forms_[static_cast<std::size_t>(form)].tiles.front().rows, w.cols(), rows);
    const std::int64_t bytes = std::max<std::int64_t>(1, part.panel_bytes * columns / w.cols());
    std::int64_t panels = std::min(kGroupBytes / bytes, part.num_panels / wanted);
    panels = std::max({panels, kSmallestGroupBytes / bytes / rows, std::int64_t{1}});
    if (form != RowForm::q8) panels = (panels + kPanelsTogether - 1) / kPanelsTogether * kPanelsTogether;
    for (std::int64_t p = 0; p < part.num_panels; p += panels) {
      groups_.push_back({&part, p, std::min(panels, part.num_panels - p), columns});
    }
  }
}

void Products::store_rows(const Tensor& x, const ProductKernels& kernels) {
  Form& form = forms_[static_cast<std::size_t>(kernels.form)];
  const std::int64_t cols = x.row_elements();
  const std::int64_t row = row_form_bytes(kernels.form, cols);
  const std::int64_t count = tile_count(kernels, x.rows());
  form.tiles.clear();
  std::int64_t offset = 0;
  for (std::int64_t i = 0, first = 0; i < count; ++i) {
    const int valid = rows_of_tile(x.rows(), count, i);
    const std::size_t kernel = smallest_kernel(kernels, valid);
    form.tiles.push_back({first, valid, static_cast<int>(kernel), kernels.sizes[kernel], offset});
    offset += kernels.sizes[kernel] * row;
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
  for (call.first_col = 0; call.first_col < cols; call.first_col = call.end_col) {
    call.end_col = std::min(cols, call.first_col + group.columns);
    for (const Tile& tile : form.tiles) {
      call.x = form.data + tile.offset;
      call.valid_rows = tile.valid_rows;
      call.out = out.row(tile.first_row) + first_output;
      kernels.kernels[static_cast<std::size_t>(tile.kernel)](call);
    }
  }
}

}  // namespace fixpoint::kernels::cpu
