#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <list>
#include <stdexcept>

#include "kernels/backend.h"
#include "kernels/cuda/attention_kernels.h"
#include "kernels/cuda/device_weight.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/prefill_attention.h"
#include "kernels/cuda/product_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda/sampling_kernels.h"
#include "kernels/cuda/step_arrays.h"
#include "kernels/cuda/work_counter.h"
#include "kernels/cuda_backend.h"
#include "kernels/detail/checks.h"

namespace fixpoint::kernels {
namespace cuda {
namespace {

// A batch beyond this is computed without a recording: its launches cost little beside its work.
constexpr std::int32_t kMaxRecordedTokens = 256;
constexpr std::size_t kMaxRecordings = 48;

/// A step of one bucket: its arrays and, from the second time on, the recording.
struct Recording {
  StepBucket bucket;
  BucketArrays arrays;
  int memory_moves;
  bool warm = false;
  std::optional<Graph> graph;
  StepWork work;
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options)
      : options_(options), device_(open_device(options.device)), index_(stream_), step_(index_), weight_upload_(stream_), products_(stream_, options.products) {}

  ~CudaBackend() override { static_cast<void>(cudaStreamSynchronize(stream_.get())); }

  std::string name() const override {
    return "cuda " + std::string(device_.name) + (options_.products == CudaProducts::exact ? ", exact products" : ", fastest products");
  }
  OpCounters counters() const override { return work_.totals(); }
  void synchronize() override {
    use_device();
    stream_.synchronize();
  }

  std::optional<MemoryInfo> memory() const override {
    use_device();
    MemoryInfo info;
    check(cudaMemGetInfo(&info.free, &info.total), "cudaMemGetInfo");
    return info;
  }

  Buffer allocate(std::size_t bytes) override {
    use_device();
    ++memory_moves_;
    DeviceMemory memory(bytes);
    return {memory.release(), bytes, [](void* data, std::size_t, void*) { static_cast<void>(cudaFree(data)); }, nullptr};
  }

  Buffer allocate_host(std::size_t bytes) override {
    use_device();
    PinnedMemory memory(bytes);
    return {memory.release(), bytes, [](void* data, std::size_t, void*) { static_cast<void>(cudaFreeHost(data)); }, nullptr};
  }

  void upload(const Tensor& from, const Tensor& to) override {
    checks::same_bytes("upload", from, to);
    use_device();
    check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync");
  }

  void download(const Tensor& from, const Tensor& to) override {
    checks::same_bytes("download", from, to);
    use_device();
    check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToHost, stream_.get()), "cudaMemcpyAsync");
  }

  std::unique_ptr<Weight> load_weight(std::span<const Tensor> parts) override {
    checks::weight_parts(parts);
    use_device();
    ++memory_moves_;
    return std::make_unique<DeviceWeight>(parts, weight_upload_);
  }

  KvLayer allocate_kv(const KvShape& shape) override {
    checks::kv_shape(shape);
    if (shape.head_dim > kMaxHeadDim) throw std::invalid_argument("allocate_kv: head_dim is above " + std::to_string(kMaxHeadDim));
    return {shape, allocate(kv_bytes(shape))};
  }
  std::size_t kv_bytes(const KvShape& shape) const override { return KvGeometry(shape, nullptr).bytes(); }

  void run_step(const StepArrays& arrays, const std::function<void()>& body) override {
    use_device();
    if (options_.graphs && is_plain_decode(arrays)) return run_recorded(arrays, body);
    step_.begin(arrays);
    run_body(body);
  }

  std::int64_t padded_rows(std::int64_t tokens) const override {
    return options_.graphs && tokens <= kMaxRecordedTokens ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(tokens, 1)))) : tokens;
  }

  void embed(const Weight& table, std::span<const std::int32_t> tokens, const Tensor& out) override {
    checks::embed(table, tokens, out);
    const std::int32_t* ids = step_.tokens(tokens);
    for (const DeviceWeight::Part& part : weight(table).parts()) queue_embed(part.type, part.view, part.first_row, ids, rows(out), stream_.get());
  }

  void rms_norm(const Tensor& x, const Tensor& w, float eps, const Tensor& out) override {
    checks::norm("rms_norm", x, w, out);
    queue_rms_norm(rows(x), w.row(0), eps, rows(out), stream_.get());
  }

  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& w, float eps, const Tensor& out) override {
    checks::same_matrix("add_rms_norm", residual, delta);
    checks::norm("add_rms_norm", residual, w, out);
    queue_add_rms_norm(rows(residual), rows(delta), w.row(0), eps, rows(out), stream_.get());
  }

  void add(const Tensor& x, const Tensor& delta) override {
    checks::same_matrix("add", x, delta);
    queue_add(rows(x), rows(delta), stream_.get());
  }

  void matmul(const Tensor& x, const Weight& w, const Tensor* bias, const Tensor& out) override {
    checks::matmul(x, w, bias, out);
    products_.multiply(rows(x), weight(w), bias != nullptr ? bias->row(0) : nullptr, rows(out));
    work_.product(x.rows(), w);
  }

  void rotate_and_store(const Tensor& q, const Tensor& k, const Tensor& v, const HeadNorm* norm, const Rope& rope,
                        const PagedBatch& batch, KvLayer& layer) override {
    checks::rotate_and_store(q, k, v, norm, rope, batch, layer.shape);
    const RopeView turn{frequencies(rope), static_cast<std::int32_t>(rope.inv_freq.size()), rope.magnitude,
                        rope.pairing == RopePairing::adjacent};
    const HeadNormView weights =
        norm != nullptr ? HeadNormView{norm->q.row(0), norm->k.row(0), norm->eps} : HeadNormView{};
    const DeviceBatch arrays = step_.batch(batch);
    queue_rotate_and_store(rows(q), rows(k), rows(v), weights, turn, arrays.positions, arrays.slots,
                           KvGeometry(layer.shape, layer.storage.data()), stream_.get());
  }

  void attention(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale, const Tensor& out) override {
    checks::attention(q, batch, layer.shape, out);
    AttentionInput in{.q = rows(q), .out = rows(out), .heads = static_cast<std::int32_t>(q.shape[1]), .scale = scale};
    in.kv = KvGeometry(layer.shape, layer.storage.data());
    const DeviceBatch arrays = step_.batch(batch);
    in.block_indptr = arrays.block_indptr;
    in.block_ids = arrays.block_ids;
    in.positions = arrays.positions;
    const std::int32_t group = in.heads / in.kv.heads;
    const bool single = batch.num_tokens() == batch.num_seqs();  // one token each: tiles of one token
    const bool tensor_cores = options_.products == CudaProducts::fastest && can_prefill(in.kv);
    const TileTokens tokens{.few = single ? 1 : tokens_per_tile(group), .prefill = tensor_cores ? prefill_tokens_per_tile(group) : 0};
    const DevicePlan plan = step_.plan(batch, tokens);
    in.tiles = plan.tiles;
    in.num_tiles = plan.num_tiles;
    in.combine = plan.combine;
    in.num_combine = plan.num_combine;
    in.prefill = plan.prefill;
    in.num_prefill = plan.num_prefill;
    partials_.reserve(partial_floats(plan.slots, in.heads, in.kv) * sizeof(float));
    in.partials = partials_.as<float>();
    queue_attention(in, tokens.few * std::min(group, kMaxTileRows), stream_.get());
    queue_prefill_attention(in, stream_.get());
    work_.attention(in.heads, layer.shape, batch);
  }

  void swiglu(const Tensor& gate_up, const Tensor& out) override {
    checks::swiglu(gate_up, out);
    queue_swiglu(rows(gate_up), rows(out), stream_.get());
  }

  void gather(const Tensor& x, std::span<const std::int32_t> picked, const Tensor& out) override {
    checks::gather(x, picked, out);
    queue_gather(rows(x), step_.rows(picked), rows(out), stream_.get());
  }

  bool chooses_tokens() const override { return true; }
  void choose(const Tensor& logits, std::span<const RowChoice> choices, std::span<std::int32_t> out) override {
    checks::choose(logits, choices, out);
    if (choices.empty()) return;
    use_device();
    chosen_.reserve(std::bit_ceil(out.size_bytes()));  // no recording holds these addresses
    choice_work_.reserve(choice_work_bytes());
    queue_choices(rows(logits), choices, index_.put(choices), choice_work_.data(), chosen_.as<std::int32_t>(), stream_.get());
    check(cudaMemcpyAsync(out.data(), chosen_.data(), out.size_bytes(), cudaMemcpyDeviceToHost, stream_.get()), "cudaMemcpyAsync");
  }

  void copy_blocks(KvLayer& layer, std::span<const BlockCopy> copies) override {
    checks::copy_blocks(layer.shape, copies);
    use_device();
    const KvGeometry kv(layer.shape, layer.storage.data());
    const auto copy_piece = [&](std::byte* data, std::size_t bytes, const BlockCopy& copy) {
      if (bytes == 0) return;
      check(cudaMemcpyAsync(data + static_cast<std::size_t>(copy.to) * bytes, data + static_cast<std::size_t>(copy.from) * bytes, bytes,
                            cudaMemcpyDeviceToDevice, stream_.get()),
            "cudaMemcpyAsync");
    };
    for (const BlockCopy& copy : copies) {
      copy_piece(kv.data, kv.block_bytes(), copy);
      copy_piece(reinterpret_cast<std::byte*>(kv.scales), kv.block_scale_bytes(), copy);
    }
  }

 private:
  static cudaDeviceProp open_device(int device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    return properties;
  }

  /// The runtime's current device is the calling thread's own; a backend may be made on one thread and used on another.
  void use_device() const { check(cudaSetDevice(options_.device), "cudaSetDevice"); }

  static const DeviceWeight& weight(const Weight& w) { return dynamic_cast<const DeviceWeight&>(w); }

  /// While a step is recorded, its rows are those of its bucket.
  [[nodiscard]] Rows rows(const Tensor& t) const {
    const auto n = static_cast<std::int32_t>(t.rows());
    return {reinterpret_cast<float*>(t.data), t.row_stride, n == step_rows_ ? bucket_rows_ : n, static_cast<std::int32_t>(t.row_elements())};
  }

  static bool is_plain_decode(const StepArrays& arrays) {
    const std::int32_t n = arrays.batch.num_tokens();
    return n > 0 && n <= kMaxRecordedTokens && n == arrays.batch.num_seqs() && static_cast<std::size_t>(n) == arrays.rows.size();
  }

  void run_body(const std::function<void()>& body) {
    try {
      body();
    } catch (...) {
      step_.end();
      step_rows_ = bucket_rows_ = -1;
      throw;
    }
    step_.end();
    step_rows_ = bucket_rows_ = -1;
  }

  void run_recorded(const StepArrays& arrays, const std::function<void()>& body) {
    check_decode(arrays);
    Recording& recording = find_recording(StepBucket::of(arrays));
    recording.arrays.fill(arrays, index_);
    const auto run = [&] {
      step_.begin(arrays, recording.arrays);
      step_rows_ = arrays.batch.num_tokens();
      bucket_rows_ = recording.bucket.tokens;
      run_body(body);
    };
    if (!recording.warm) {  // the first time grows what memory the operations need, so that the recording finds it in place
      work_.begin_recording();
      run();
      recording.work = work_.end_recording();
      recording.memory_moves = moves();
      recording.warm = true;
    } else if (!recording.graph) {
      const OpCounters before = work_.totals();
      recording.graph.emplace(Graph::capture(stream_, run));
      work_.restore(before);
    }
    if (recording.graph) recording.graph->launch(stream_);
    work_.repeat(recording.work, arrays.batch);
  }

  /// What the operations would have checked, since a recording goes without them.
  static void check_decode(const StepArrays& arrays) {
    if (arrays.tokens.size() != arrays.batch.positions.size()) throw std::invalid_argument("run_step: tokens and positions differ in number");
    for (std::size_t i = 0; i < arrays.rows.size(); ++i) {
      if (arrays.rows[i] != static_cast<std::int32_t>(i)) throw std::invalid_argument("run_step: rows out of order");
    }
  }

  [[nodiscard]] int moves() const { return memory_moves_ + products_.moves() + partials_.moves() + device_inv_freq_.moves(); }

  Recording& find_recording(const StepBucket& bucket) {
    // A recording holds addresses: where one may have changed, it is void.
    recordings_.remove_if([&](const Recording& r) { return r.memory_moves != moves(); });
    const auto found = std::ranges::find(recordings_, bucket, &Recording::bucket);
    if (found != recordings_.end()) {
      recordings_.splice(recordings_.begin(), recordings_, found);
      return recordings_.front();
    }
    if (recordings_.size() >= kMaxRecordings) {
      stream_.synchronize();
      recordings_.pop_back();
    }
    recordings_.push_front(Recording{bucket, BucketArrays(bucket), moves(), false, std::nullopt, {}});
    return recordings_.front();
  }

  const float* frequencies(const Rope& rope) {
    if (rope.inv_freq.empty()) return nullptr;
    if (rope.inv_freq != inv_freq_) {
      stream_.synchronize();  // nobody may be reading the old ones
      inv_freq_.clear();      // nor take what is there for the old ones, should there be no room for the new ones
      device_inv_freq_.reserve(rope.inv_freq.size() * sizeof(float));
      inv_freq_ = rope.inv_freq;
      check(cudaMemcpyAsync(device_inv_freq_.data(), inv_freq_.data(), inv_freq_.size() * sizeof(float), cudaMemcpyHostToDevice, stream_.get()),
            "cudaMemcpyAsync");
    }
    return device_inv_freq_.as<float>();
  }

  const CudaOptions options_;
  const cudaDeviceProp device_;
  Stream stream_;
  IndexUpload index_;
  CurrentStep step_;
  StagedUpload weight_upload_;
  Products products_;
  DeviceMemory partials_;
  DeviceMemory chosen_, choice_work_;
  std::vector<float> inv_freq_;
  DeviceMemory device_inv_freq_;
  std::list<Recording> recordings_;
  int memory_moves_ = 0;
  std::int32_t step_rows_ = -1, bucket_rows_ = -1;
  WorkCounter work_;
};

}  // namespace
}  // namespace cuda

CudaStatus cuda_status() {
  CudaStatus status;
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    status.reason = result != cudaSuccess ? std::string(cudaGetErrorString(result)) : "no CUDA device";
    return status;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), ", %.0f GiB, sm_%d%d", static_cast<double>(properties.totalGlobalMem) / (1U << 30U), properties.major,
                  properties.minor);
    status.devices.push_back(std::string(properties.name) + text.data());
  }
  return status;
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) throw std::runtime_error("cuda: " + status.reason);
  if (options.device < 0 || static_cast<std::size_t>(options.device) >= status.devices.size()) {
    throw std::runtime_error("cuda: there is no device " + std::to_string(options.device));
  }
  return std::make_unique<cuda::CudaBackend>(options);
}

}  // namespace fixpoint::kernels
