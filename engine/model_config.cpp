#include "engine/model_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fixpoint::engine {
namespace {

/// Llama-3.1: long wavelengths are divided by `factor`, short ones kept, those between blended.
double scale_llama3(double freq, const RopeScaling& s) {
  const double wavelength = 2 * std::numbers::pi / freq;
  const auto original = static_cast<double>(s.original_context);
  if (wavelength < original / s.high_freq_factor) return freq;
  if (wavelength > original / s.low_freq_factor) return freq / s.factor;
  const double smooth = (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * freq / s.factor + smooth * freq;
}

/// The pair whose wavelength makes `rotations` turns over the original context (YaRN, section 3.2).
double yarn_pair(double rotations, const ModelConfig& c) {
  const auto original = static_cast<double>(c.rope_scaling.original_context);
  return static_cast<double>(c.rotary_dim) * std::log(original / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(static_cast<double>(c.rope_theta)));
}

}  // namespace

std::string_view to_string(Architecture arch) {
  switch (arch) {
    case Architecture::llama: return "llama";
    case Architecture::qwen2: return "qwen2";
    case Architecture::qwen3: return "qwen3";
  }
  return "?";
}

kernels::Rope make_rope(const ModelConfig& c) {
  const auto& s = c.rope_scaling;
  kernels::Rope rope{.pairing = c.rope_pairing, .inv_freq = {}, .magnitude = 1.0F};
  const auto pairs = c.rotary_dim / 2;
  const double low = std::max(std::floor(yarn_pair(s.beta_fast, c)), 0.0);
  const double high = std::min(std::ceil(yarn_pair(s.beta_slow, c)), static_cast<double>(c.rotary_dim - 1));
  for (std::int64_t i = 0; i < pairs; ++i) {
    double freq = std::pow(static_cast<double>(c.rope_theta),
                           -2.0 * static_cast<double>(i) / static_cast<double>(c.rotary_dim));
    switch (s.kind) {
      case RopeScaling::Kind::none: break;
      case RopeScaling::Kind::linear: freq /= s.factor; break;
      case RopeScaling::Kind::llama3: freq = scale_llama3(freq, s); break;
      case RopeScaling::Kind::yarn: {
        const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
        freq = freq / s.factor * ramp + freq * (1 - ramp);
        break;
      }
    }
    if (!c.rope_divisors.empty()) freq /= static_cast<double>(c.rope_divisors[static_cast<std::size_t>(i)]);
    rope.inv_freq.push_back(static_cast<float>(freq));
  }
  if (s.kind == RopeScaling::Kind::yarn) {
    rope.magnitude = s.attn_factor != 0.0F ? s.attn_factor : 0.1F * std::log(s.factor) + 1.0F;
  }
  return rope;
}

}  // namespace fixpoint::engine
