// Speed of the CPU kernels on the shapes of a 0.5B model, beside the machine's measured limits.
//   --clock cpu counts the process's CPU time: with one thread, a busy machine then disturbs the figures less.
//   bench_kernels [--threads N] [--clock cpu] [--isa avx512|avx2|portable] [--type Q4_0] [--kv-type F16] [--op matmul|attention|rows] [--seconds 0.3]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "kernels/machine.h"
#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

struct Options {
  int threads = 0;
  CpuIsa isa = CpuIsa::best;
  std::optional<DType> type;
  KvType kv_type = KvType::f16;
  std::string op;
  double seconds = 0.3;
  bool cpu_clock = false;
};

double now(const Options& o) {
  timespec t{};
  clock_gettime(o.cpu_clock ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Seconds of the fastest call of those that fill the time given: the limits are the best of several runs, too.
double seconds_per_call(const Options& o, const std::function<void()>& call) {
  call();
  std::vector<double> times;
  const double end = now(o) + o.seconds;
  do {
    const double start = now(o);
    call();
    times.push_back(now(o) - start);
  } while (now(o) < end || times.size() < 3);
  return std::ranges::min(times);
}

double arithmetic_limit(DType type, const MachineLimits& m) {
  if (type == DType::f32 || type == DType::f16) return m.fp32_flops;
  if (type == DType::bf16) return m.bf16_flops > 0 ? m.bf16_flops : m.fp32_flops;
  return m.int8_ops > 0 ? m.int8_ops : m.fp32_flops;
}

void report(const std::string& what, double seconds, double operations, double bytes, double peak,
            const MachineLimits& m) {
  std::printf("%-48s %9.1f us  %7.1f Gop/s (%3.0f %%)  %6.1f GB/s (%3.0f %%)\n", what.c_str(), seconds * 1e6,
              operations / seconds / 1e9, 100 * operations / seconds / peak, bytes / seconds / 1e9,
              100 * bytes / seconds / m.read_bytes_per_s);
}

struct Matrix {
  const char* name;
  std::int64_t rows, cols;
};

void bench_matmul(Backend& backend, const Options& o, const MachineLimits& m) {
  constexpr std::int64_t kBeyondCache = 96 << 20;
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                           DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k}) {
    if (o.type && *o.type != type) continue;
    const bool k_quant = traits(type).block_elements == 256;
    const Matrix shapes[] = {{"gate_up", 9728, k_quant ? 1536 : 896}, {"down", 896, 4864}};
    for (const Matrix& shape : shapes) {
      Random random(1);
      HostMatrix few(type, 64, shape.cols, random);
      std::vector<std::byte> bytes;
      while (static_cast<std::int64_t>(bytes.size()) < shape.rows * row_bytes(type, shape.cols)) {
        bytes.insert(bytes.end(), few.bytes.begin(), few.bytes.end());
      }
      const Tensor part = Tensor::of(bytes.data(), type, {shape.rows, shape.cols});
      std::vector<std::unique_ptr<Weight>> copies;
      do copies.push_back(backend.load_weight({&part, 1}));
      while (static_cast<std::int64_t>(copies.size()) * copies[0]->bytes() < kBeyondCache);
      for (const std::int64_t n : {1, 2, 4, 8, 16, 32, 512}) {
        Floats x = random.normal(n * shape.cols);
        Floats out = poison(n * shape.rows);
        const std::size_t count = n >= 512 ? 1 : copies.size();
        const double s = seconds_per_call(o, [&] {
          for (std::size_t i = 0; i < count; ++i) {
            backend.matmul(matrix(x, n, shape.cols), *copies[i], nullptr, matrix(out, n, shape.rows));
          }
        }) / static_cast<double>(count);
        const auto operations = static_cast<double>(2 * n * shape.rows * shape.cols);
        report(std::string(traits(type).name) + " " + shape.name + " rows " + std::to_string(n), s, operations,
               static_cast<double>(copies[0]->bytes()), arithmetic_limit(type, m), m);
      }
    }
  }
}

struct AttentionShape {
  std::int32_t sequences, tokens, context;
  std::int32_t shared = 0;  ///< tokens of the context that all sequences have in the same blocks
  std::int32_t kv_heads = 2, heads = 14, dim = 64;
};

void bench_attention(Backend& backend, const Options& o, const MachineLimits& m) {
  for (const AttentionShape a :
       {AttentionShape{1, 512, 512}, {1, 1, 1024}, {1, 1, 8192}, {8, 1, 1024}, {32, 1, 1024}, {1, 6, 1024},
        {8, 1, 1024, 992}, {32, 1, 1024, 992}, {32, 1, 8192, 8160}, {32, 4, 1024, 992},
        {32, 1, 1024, 0, 8, 32, 128}, {32, 1, 1024, 992, 8, 32, 128},
        {32, 1, 1024, 0, 14, 14, 64}, {32, 1, 1024, 992, 14, 14, 64}}) {
    const std::int32_t blocks = (a.context + 15) / 16;
    KvLayer kv = backend.allocate_kv({blocks * a.sequences, 16, a.kv_heads, a.dim, o.kv_type});
    std::vector<std::int32_t> q_indptr{0}, block_indptr{0}, last, positions;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(blocks * a.sequences));
    std::iota(ids.begin(), ids.end(), 0);
    Random random(3);
    std::ranges::shuffle(ids, random.engine());
    for (std::int32_t s = 1; s < a.sequences; ++s) {
      std::copy_n(ids.begin(), a.shared / 16, ids.begin() + std::int64_t{s} * blocks);
    }
    for (std::int32_t s = 0; s < a.sequences; ++s) {
      for (std::int32_t p = a.context - a.tokens; p < a.context; ++p) positions.push_back(p);
      q_indptr.push_back(static_cast<std::int32_t>(positions.size()));
      block_indptr.push_back(block_indptr.back() + blocks);
      last.push_back(a.context - (blocks - 1) * 16);
    }
    const PagedBatch batch{16, q_indptr, block_indptr, ids, last, positions};
    const std::int64_t n = a.sequences * a.tokens;
    Floats q = random.normal(n * a.heads * a.dim);
    Floats out = poison(n * a.heads * a.dim);
    const OpCounters before = backend.counters();
    backend.attention(cube(q, n, a.heads, a.dim), kv, batch, 0.125F, cube(out, n, a.heads, a.dim));
    const OpCounters after = backend.counters();
    const double s = seconds_per_call(o, [&] {
      backend.attention(cube(q, n, a.heads, a.dim), kv, batch, 0.125F, cube(out, n, a.heads, a.dim));
    });
    report("attention " + std::string(to_string(o.kv_type)) + " " + std::to_string(a.sequences) + " x " + std::to_string(a.tokens) + " of " + std::to_string(a.context) +
               (a.shared > 0 ? " shared" : "") + " " + std::to_string(a.kv_heads) + ":" + std::to_string(a.heads), s,
           static_cast<double>(after.flops - before.flops), static_cast<double>(after.kv_bytes - before.kv_bytes),
           m.fp32_flops, m);
  }
}

void bench_rows(Backend& backend, const Options& o, const MachineLimits& m) {
  for (const std::int64_t n : {1, 512}) {
    Random random(4);
    Floats x = random.normal(n * 896);
    Floats delta = random.normal(n * 896, 0.0F);
    Floats weight = random.normal(896);
    Floats out = poison(n * 896);
    const std::string rows = " rows " + std::to_string(n);
    const double norm = seconds_per_call(o, [&] {
      backend.add_rms_norm(matrix(x, n, 896), matrix(delta, n, 896), vector(weight), 1e-6F, matrix(out, n, 896));
    });
    report("add_rms_norm" + rows, norm, static_cast<double>(n * 896 * 6), static_cast<double>(n * 896 * 16), m.fp32_flops, m);
    Floats gate_up = random.normal(n * 2 * 4864);
    Floats activated = poison(n * 4864);
    const double glu = seconds_per_call(o, [&] { backend.swiglu(matrix(gate_up, n, 9728), matrix(activated, n, 4864)); });
    report("swiglu" + rows, glu, static_cast<double>(n * 4864 * 25), static_cast<double>(n * 4864 * 12), m.fp32_flops, m);
    Rope rope;
    for (int i = 0; i < 32; ++i) rope.inv_freq.push_back(std::pow(1e6F, -static_cast<float>(i) / 32.0F));
    std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
    std::iota(positions.begin(), positions.end(), 0);
    KvLayer kv = backend.allocate_kv({64, 16, 2, 64, o.kv_type});
    std::vector<std::int32_t> q_indptr{0, static_cast<std::int32_t>(n)};
    const auto blocks = static_cast<std::int32_t>((n + 15) / 16);
    std::vector<std::int32_t> block_indptr{0, blocks}, ids(static_cast<std::size_t>(blocks)), last{static_cast<std::int32_t>(n - (blocks - 1) * 16)};
    std::iota(ids.begin(), ids.end(), 0);
    const PagedBatch batch{16, q_indptr, block_indptr, ids, last, positions};
    Floats k = random.normal(n * 128);
    Floats v = random.normal(n * 128);
    const double turn = seconds_per_call(o, [&] {
      backend.rotate_and_store(cube(x, n, 14, 64), cube(k, n, 2, 64), cube(v, n, 2, 64), nullptr, rope, batch, kv);
    });
    const double stored = static_cast<double>(n * 2 * 2 * kv_row_bytes(o.kv_type, 64));
    report("rotate_and_store" + rows, turn, static_cast<double>(n * 1024 * 3),
           static_cast<double>(n * (896 * 8 + 128 * 8 + 128 * 4)) + stored, m.fp32_flops, m);
  }
}

Options parse(int argc, char** argv) {
  Options o;
  const std::map<std::string, CpuIsa> isas = {{"avx512", CpuIsa::avx512}, {"avx2", CpuIsa::avx2}, {"portable", CpuIsa::portable}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--threads") o.threads = std::atoi(value.c_str());
    if (name == "--isa" && isas.contains(value)) o.isa = isas.at(value);
    if (name == "--type") o.type = parse_dtype(value);
    if (name == "--kv-type") o.kv_type = parse_kv_type(value).value_or(KvType::f16);
    if (name == "--clock") o.cpu_clock = value == "cpu";
    if (name == "--op") o.op = value;
    if (name == "--seconds") o.seconds = std::atof(value.c_str());
  }
  return o;
}

int run(int argc, char** argv) {
  const Options o = parse(argc, argv);
  const auto backend = make_cpu_backend({o.threads, o.isa});
  const MachineLimits m = measure_machine_limits(o.threads);
  std::printf("%s; limits: read %.1f GB/s, FP32 %.0f, BF16 %.0f, INT8 %.0f Gop/s\n", backend->name().c_str(),
              m.read_bytes_per_s / 1e9, m.fp32_flops / 1e9, m.bf16_flops / 1e9, m.int8_ops / 1e9);
  if (o.op.empty() || o.op == "matmul") bench_matmul(*backend, o, m);
  if (o.op.empty() || o.op == "attention") bench_attention(*backend, o, m);
  if (o.op.empty() || o.op == "rows") bench_rows(*backend, o, m);
  return 0;
}

}  // namespace
}  // namespace fixpoint::kernels

int main(int argc, char** argv) { return fixpoint::kernels::run(argc, argv); }
