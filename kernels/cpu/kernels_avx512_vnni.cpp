#include "kernels/cpu/block_products.h"
#include "kernels/cpu/simd_avx512.h"

namespace fixpoint::kernels::cpu {
namespace {

// g++ 12 surrounds the intrinsic with register moves, hence the assembly.
struct Avx512Vnni : Avx512 {
  static I dot(I acc, B w, const std::int8_t* x) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*reinterpret_cast<const std::int8_t(*)[4]>(x)));
    return acc;
  }
  static I q8_start(const std::int32_t* neg_sum) { return int_shifted<7>(neg_sum); }
  static I q8_dot(I acc, B w, const std::int8_t* x) { return dot(acc, w, x); }
};

}  // namespace

void use_avx512_vnni(KernelTable& table) { use_block_products<Avx512Vnni, RowSizes::many>(table); }

}  // namespace fixpoint::kernels::cpu
