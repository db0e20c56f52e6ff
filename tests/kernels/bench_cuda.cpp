// Speed of the CUDA kernels on the shapes of a 7B model (Qwen2.5-7B), beside this device's copy bandwidth and BF16 matrix
// rate, both measured in the same run. Prints one JSON object a line; asserts nothing.
//   bench_cuda [device]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda_backend.h"
#include "kernels/quant.h"

namespace fixpoint::kernels {
namespace {

using Clock = std::chrono::steady_clock;

/// The median of several runs of `count` calls each, in seconds a call; the device works through a run without waiting.
double seconds_per_call(Backend& backend, const std::function<void()>& call) {
  call();
  backend.synchronize();
  const auto run = [&](int count) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) call();
    backend.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count() / count;
  };
  const int count = std::clamp(static_cast<int>(0.05 / std::max(run(1), 1e-7)), 1, 2000);
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) times.push_back(run(count));
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct Ceilings {
  double bytes_per_s = 0, flops = 0;
};

void report(const std::string& name, double seconds, double bytes, double flops, const Ceilings& c) {
  std::printf("{\"name\": \"%s\", \"us\": %.2f, \"gb_per_s\": %.1f, \"tflops\": %.2f, \"of_bandwidth\": %.3f, \"of_matrix_rate\": %.3f}\n", name.c_str(),
              seconds * 1e6, bytes / seconds / 1e9, flops / seconds / 1e12, bytes / seconds / c.bytes_per_s, flops / seconds / c.flops);
  std::fflush(stdout);
}

/// Memory of the device that holds small random numbers.
class Floats {
 public:
  Floats(Backend& backend, std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols), buffer_(backend.allocate(static_cast<std::size_t>(rows * cols) * 4)) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> values(-1.0F, 1.0F);
    std::vector<float> host(static_cast<std::size_t>(rows * cols));
    for (float& value : host) value = values(random);
    backend.upload(Tensor::of(host.data(), DType::f32, {rows, cols}), tensor());
  }
  [[nodiscard]] Tensor tensor() const { return buffer_.view(DType::f32, {rows_, cols_}); }
  [[nodiscard]] Tensor vector() const { return buffer_.view(DType::f32, {rows_ * cols_}); }
  [[nodiscard]] Tensor heads(std::int64_t count) const { return buffer_.view(DType::f32, {rows_, count, cols_ / count}); }

 private:
  std::int64_t rows_, cols_;
  Buffer buffer_;
};

struct LoadedMatrix {
  std::vector<std::byte> bytes;
  std::unique_ptr<Weight> weight;

  LoadedMatrix(Backend& backend, DType type, std::int64_t rows, std::int64_t cols) {
    std::mt19937 random(9);
    std::uniform_real_distribution<float> values(-0.05F, 0.05F);
    std::vector<float> row(static_cast<std::size_t>(cols));
    for (float& value : row) value = values(random);
    const std::int64_t row_size = row_bytes(type, cols);
    bytes.resize(static_cast<std::size_t>(rows * row_size));
    quantize_row(type, row.data(), bytes.data(), cols);
    for (std::int64_t r = 1; r < rows; ++r) std::copy_n(bytes.begin(), row_size, bytes.begin() + r * row_size);
    const Tensor part = Tensor::of(bytes.data(), type, {rows, cols});
    weight = backend.load_weight({&part, 1});
  }
};

Ceilings measure_ceilings(Backend& backend) {
  Ceilings c;
  // One block of 1 GiB copied to another: a copy reads and writes.
  KvLayer layer = backend.allocate_kv({2, 1 << 20, 2, 128, KvType::f16});
  const std::vector<BlockCopy> copy{{0, 1}};
  const double bytes = 2.0 * 2 * 2 * 128 * (1 << 20);
  c.bytes_per_s = 2 * bytes / seconds_per_call(backend, [&] { backend.copy_blocks(layer, copy); });
  // The library's, through the backend: so tall that bringing x to BF16 before it, which is in the time, is little beside it.
  constexpr std::int64_t kRows = 32768, kCols = 8192, kTokens = 4096;
  const LoadedMatrix w(backend, DType::bf16, kRows, kCols);
  const Floats x(backend, kTokens, kCols);
  const Floats out(backend, kTokens, kRows);
  c.flops = 2.0 * kRows * kCols * kTokens / seconds_per_call(backend, [&] { backend.matmul(x.tensor(), *w.weight, nullptr, out.tensor()); });
  std::printf("{\"device\": \"%s\", \"copy_gb_per_s\": %.1f, \"bf16_tflops\": %.1f}\n", backend.name().c_str(), c.bytes_per_s / 1e9, c.flops / 1e12);
  return c;
}

void time_products(Backend& backend, const Ceilings& c, const std::string& label, std::initializer_list<std::int64_t> batches) {
  constexpr std::int64_t kRows = 37888, kCols = 3584;  // gate and up
  for (const DType type : {DType::bf16, DType::f16, DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) {
    const LoadedMatrix w(backend, type, kRows, kCols);
    for (const std::int64_t n : batches) {
      const Floats x(backend, n, kCols);
      const Floats out(backend, n, kRows);
      const double seconds = seconds_per_call(backend, [&] { backend.matmul(x.tensor(), *w.weight, nullptr, out.tensor()); });
      report("matmul " + label + " " + std::string(traits(type).name) + " n=" + std::to_string(n), seconds,
             static_cast<double>(w.weight->bytes()) + 4.0 * static_cast<double>(n * (kRows + kCols)), 2.0 * static_cast<double>(n * kRows * kCols), c);
    }
  }
}

/// `sequences` of `context` tokens, the last `tokens` of each computed.
void time_attention(Backend& backend, const Ceilings& c, const std::string& label, KvType type, std::int32_t sequences, std::int32_t context, std::int32_t tokens) {
  constexpr std::int32_t kHeads = 28, kKvHeads = 4, kDim = 128, kBlock = 16;
  const std::int32_t blocks = (context + kBlock - 1) / kBlock;
  std::vector<std::int32_t> q_indptr{0}, block_indptr{0}, block_ids, last, positions;
  for (std::int32_t s = 0; s < sequences; ++s) {
    for (std::int32_t b = 0; b < blocks; ++b) block_ids.push_back(b * sequences + s);
    for (std::int32_t p = context - tokens; p < context; ++p) positions.push_back(p);
    q_indptr.push_back(static_cast<std::int32_t>(positions.size()));
    block_indptr.push_back(static_cast<std::int32_t>(block_ids.size()));
    last.push_back(context - (blocks - 1) * kBlock);
  }
  const PagedBatch batch{kBlock, q_indptr, block_indptr, block_ids, last, positions};
  KvLayer layer = backend.allocate_kv({blocks * sequences, kBlock, kKvHeads, kDim, type});
  const std::int64_t n = sequences * tokens;
  {  // Finite numbers everywhere: what lay there before may be none.
    std::vector<std::int32_t> all_q{0}, all_positions;
    for (std::int32_t s = 0; s < sequences; ++s) {
      for (std::int32_t p = 0; p < context; ++p) all_positions.push_back(p);
      all_q.push_back(static_cast<std::int32_t>(all_positions.size()));
    }
    const Floats kv(backend, static_cast<std::int64_t>(sequences) * context, kKvHeads * kDim);
    backend.rotate_and_store(kv.heads(kKvHeads), kv.heads(kKvHeads), kv.heads(kKvHeads), nullptr, {},
                             {kBlock, all_q, block_indptr, block_ids, last, all_positions}, layer);
    backend.synchronize();
  }
  const Floats q(backend, n, kHeads * kDim);
  const Floats out(backend, n, kHeads * kDim);
  // As in a step: the arrays are moved once for many calls.
  constexpr int kLayers = 16;
  const double seconds = seconds_per_call(backend, [&] {
              backend.run_step({{}, batch, {}}, [&] {
                for (int i = 0; i < kLayers; ++i) backend.attention(q.heads(kHeads), layer, batch, 0.088F, out.heads(kHeads));
              });
            }) / kLayers;
  double pairs = 0;
  for (const std::int32_t p : positions) pairs += p + 1;
  const auto kv_bytes = static_cast<double>(2 * kKvHeads * kv_row_bytes(type, kDim)) * sequences * context;
  report("attention " + label + " " + std::string(to_string(type)) + " " + std::to_string(sequences) + " x " + std::to_string(tokens) + " of " + std::to_string(context),
         seconds, kv_bytes, 4.0 * pairs * kHeads * kDim, c);
}

void time_rows(Backend& backend, const Ceilings& c) {
  const LoadedMatrix table(backend, DType::bf16, 4096, 3584);
  for (const std::int64_t n : {1, 512}) {
    const Floats x(backend, n, 3584), y(backend, n, 3584), gate_up(backend, n, 37888), act(backend, n, 18944),
        weight(backend, 1, 3584);
    const auto bytes = static_cast<double>(n * 4);
    const std::vector<std::int32_t> rows(static_cast<std::size_t>(n), 0);
    const auto time = [&](const std::string& name, double traffic, const std::function<void()>& call) {
      report(name + " n=" + std::to_string(n), seconds_per_call(backend, call), traffic, 0, c);
    };
    time("rms_norm", bytes * 2 * 3584, [&] { backend.rms_norm(x.tensor(), weight.vector(), 1e-6F, y.tensor()); });
    time("add_rms_norm", bytes * 4 * 3584, [&] { backend.add_rms_norm(x.tensor(), y.tensor(), weight.vector(), 1e-6F, y.tensor()); });
    time("add", bytes * 3 * 3584, [&] { backend.add(x.tensor(), y.tensor()); });
    time("swiglu", bytes * (37888 + 18944), [&] { backend.swiglu(gate_up.tensor(), act.tensor()); });
    // These take an array of the host's each call: its copy is in the time.
    time("embed", bytes * 1.5 * 3584, [&] { backend.embed(*table.weight, rows, y.tensor()); });
    time("gather", bytes * 2 * 3584, [&] { backend.gather(x.tensor(), rows, y.tensor()); });
  }
}

/// What one step does with the keys and queries of 512 tokens beside attention.
void time_keys(Backend& backend, const Ceilings& c) {
  constexpr std::int32_t kTokens = 512, kBlock = 16, kLayers = 16;
  std::vector<std::int32_t> positions(kTokens), block_ids(kTokens / kBlock);
  std::iota(positions.begin(), positions.end(), 0);
  std::iota(block_ids.begin(), block_ids.end(), 0);
  const std::vector<std::int32_t> q_indptr{0, kTokens}, block_indptr{0, kTokens / kBlock}, last{kBlock};
  const PagedBatch batch{kBlock, q_indptr, block_indptr, block_ids, last, positions};
  Rope rope;
  for (int i = 0; i < 64; ++i) rope.inv_freq.push_back(1.0F / static_cast<float>(1 + i));
  const Floats q(backend, kTokens, 3584), k(backend, kTokens, 512), v(backend, kTokens, 512);
  const auto time = [&](const std::string& name, double traffic, const std::function<void()>& call) {
    const double seconds = seconds_per_call(backend, [&] {
      backend.run_step({{}, batch, {}}, [&] {
        for (int i = 0; i < kLayers; ++i) call();
      });
    }) / kLayers;
    report(name + " n=512", seconds, traffic, 0, c);
  };
  const Floats weight(backend, 1, 128);
  const HeadNorm norm{weight.vector(), weight.vector(), 1e-6F};
  for (const KvType type : kKvTypes) {
    KvLayer layer = backend.allocate_kv({kTokens / kBlock, kBlock, 4, 128, type});
    const double traffic =
        4.0 * (2 * 3584 + 3 * 512) * kTokens + static_cast<double>(kv_row_bytes(type, 128)) * 2 * 4 * kTokens;
    for (const HeadNorm* heads : {static_cast<const HeadNorm*>(nullptr), &norm}) {
      time("rotate_and_store " + std::string(heads != nullptr ? "normed " : "") + std::string(to_string(type)), traffic,
           [&] { backend.rotate_and_store(q.heads(28), k.heads(4), v.heads(4), heads, rope, batch, layer); });
    }
  }
}

/// Copy on write of blocks of 16 tokens in one layer: a copy each, and what queueing it costs.
void time_block_copies(Backend& backend, const Ceilings& c) {
  constexpr std::int32_t kCopies = 64, kBlock = 16;
  for (const KvType type : {KvType::f16, KvType::int8}) {
    KvLayer layer = backend.allocate_kv({2 * kCopies, kBlock, 4, 128, type});
    std::vector<BlockCopy> copies;
    for (std::int32_t i = 0; i < kCopies; ++i) copies.push_back({i, kCopies + i});
    report("copy_blocks " + std::string(to_string(type)) + " n=" + std::to_string(kCopies),
           seconds_per_call(backend, [&] { backend.copy_blocks(layer, copies); }),
           2.0 * kCopies * static_cast<double>(kv_row_bytes(type, 128)) * 2 * 4 * kBlock, 0, c);
  }
}

/// A choice for each row; the traffic is that of reading the row once.
void time_choices(Backend& backend, const Ceilings& c) {
  constexpr std::int32_t kVocabulary = 152064;
  for (const std::int32_t n : {1, 32}) {
    const Floats logits(backend, n, kVocabulary);
    const Buffer host = backend.allocate_host(static_cast<std::size_t>(n) * sizeof(std::int32_t));
    const std::span out(reinterpret_cast<std::int32_t*>(host.data()), static_cast<std::size_t>(n));
    const auto time = [&](const std::string& name, RowChoice choice) {
      choice.vocab_size = kVocabulary;
      choice.u = 0.5;
      std::vector<RowChoice> choices;
      for (choice.row = 0; choice.row < n; ++choice.row) choices.push_back(choice);
      const double seconds = seconds_per_call(backend, [&] { backend.choose(logits.tensor(), choices, out); });
      report("choose " + name + " n=" + std::to_string(n), seconds, 4.0 * n * kVocabulary, 0, c);
    };
    time("greedy", {});
    time("temperature", {.inverse_temperature = 10.0F});
    time("top_k 40", {.inverse_temperature = 10.0F, .top_k = 40});
    time("top_p 0.95", {.inverse_temperature = 10.0F, .top_p = 0.95F});
  }
}

int run(int device) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) {
    std::fprintf(stderr, "bench_cuda: %s\n", status.reason.c_str());
    return 3;
  }
  const auto fastest = make_cuda_backend({.device = device, .products = CudaProducts::fastest});
  const Ceilings c = measure_ceilings(*fastest);
  time_products(*fastest, c, "fastest", {1, 8, 64, 512, 2048});
  const auto exact = make_cuda_backend({.device = device});
  time_products(*exact, c, "exact", {64, 512});
  for (const KvType type : {KvType::f16, KvType::bf16}) {
    for (const std::int32_t context : {1024, 8192, 32768}) time_attention(*exact, c, "exact", type, 1, context, 1);
    time_attention(*exact, c, "exact", type, 32, 8192, 1);
    time_attention(*exact, c, "exact", type, 1, 8192, 8);
    for (const std::int32_t context : {2048, 8192}) {
      time_attention(*exact, c, "exact", type, 1, context, 512);
      time_attention(*fastest, c, "fastest", type, 1, context, 512);
    }
    time_attention(*fastest, c, "fastest", type, 1, 8192, 8192);
    // On both sides of the bound in attention_plan.cpp: 64 tokens are the last without tensor cores.
    for (const std::int32_t tokens : {16, 64, 65, 128}) time_attention(*fastest, c, "fastest", type, 1, 32768, tokens);
  }
  for (const KvType type : {KvType::int8, KvType::fp8_e4m3, KvType::int4}) {
    time_attention(*exact, c, "exact", type, 1, 8192, 1);
    time_attention(*exact, c, "exact", type, 16, 8192, 1);
    time_attention(*fastest, c, "fastest", type, 1, 8192, 512);
  }
  time_rows(*exact, c);
  time_keys(*exact, c);
  time_block_copies(*exact, c);
  time_choices(*exact, c);
  return 0;
}

}  // namespace
}  // namespace fixpoint::kernels

int main(int argc, char** argv) {
  try {
    return fixpoint::kernels::run(argc > 1 ? std::atoi(argv[1]) : 0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_cuda: %s\n", e.what());
    return 1;
  }
}
