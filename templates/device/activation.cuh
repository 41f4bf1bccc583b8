// The elementwise operators on float. Functions of namespace stof keep a relative error of a few
// units in the last place, also in the tails where the result is tiny. Those of stof::coarse err by
// less than 2^-12 of the result and cost about half: they are for values that are rounded to 16
// bits at once. Either may give 0 for a result below 1e-35, and all pass NaN on.
#pragma once

namespace stof {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.693147181f;

__device__ __forceinline__ float fast_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ float fast_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ float maximum(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float minimum(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float relu(float x) {
  return maximum(x, 0.0f);
}

__device__ __forceinline__ float exp(float x) {
  return expf(x);
}

__device__ __forceinline__ float sqrt(float x) {
  return sqrtf(x);
}

__device__ __forceinline__ float reciprocal(float x) {
  return 1.0f / x;
}

__device__ __forceinline__ float tanh(float x) {
  return tanhf(x);
}

__device__ __forceinline__ float sigmoid(float x) {
  return fast_reciprocal(1.0f + expf(-x));
}

__device__ __forceinline__ float silu(float x) {
  return x * fast_reciprocal(1.0f + expf(-x));
}

// 2^(value + rest), where the rest is what rounding took from the value.
__device__ __forceinline__ float exp2_of_sum(float value, float rest) {
  return fast_exp2(value) * fmaf(kLn2, rest, 1.0f);
}

// The normal distribution's upper tail Q(a), for 0 <= a <= 14: exp(-a^2 / 2) times a polynomial in
// 1 / (1 + a / 4), fitted to a relative error of 1.2e-8.
__device__ __forceinline__ float normal_tail(float a) {
  const float t = fast_reciprocal(fmaf(0.25f, a, 1.0f));
  float ratio = 3.469187604e-02f;
  ratio = fmaf(ratio, t, -2.002065505e-01f);
  ratio = fmaf(ratio, t, 4.044470829e-01f);
  ratio = fmaf(ratio, t, -3.460495793e-01f);
  ratio = fmaf(ratio, t, 3.149613776e-01f);
  ratio = fmaf(ratio, t, -2.602988313e-02f);
  ratio = fmaf(ratio, t, 1.235355084e-01f);
  ratio = fmaf(ratio, t, 9.439316505e-02f);
  ratio = fmaf(ratio, t, 1.002813590e-01f);
  ratio = fmaf(ratio, t, -2.436188143e-05f);
  constexpr float kHalfLog2E = 0.72134752f;  // and what float32 lacks of it:
  constexpr float kHalfLog2ERest = 9.629815e-09f;
  const float square = a * a;
  const float square_rest = fmaf(a, a, -square);
  const float exponent = -kHalfLog2E * square;
  float rest = fmaf(-kHalfLog2E, square, -exponent);
  rest = fmaf(-kHalfLog2ERest, square, rest);
  rest = fmaf(-kHalfLog2E, square_rest, rest);
  return ratio * exp2_of_sum(exponent, rest);
}

// x (1 - Q(x)) for positive x, x Q(-x) for others: no tail is lost to a difference.
__device__ __forceinline__ float gelu(float x) {
  const float a = fminf(fabsf(x), 14.0f);
  return fmaf(-a, normal_tail(a), relu(x));
}

// x / 2 * (1 + tanh(u)) as x / (1 + exp(-2 u)). The exponent is the sum of a linear and a cubic
// term, each with its rest.
__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float kLinear = 2.3022082f;  // sqrt(8 / pi) log2(e)
  constexpr float kLinearRest = 1.2948402e-08f;
  constexpr float kCubic = 0.10294324f;  // 0.044715 of that
  constexpr float kCubicRest = -2.0161983e-09f;
  const float minus_x = fminf(fmaxf(-x, -12.0f), 12.0f);
  const float square = minus_x * minus_x;
  const float slope = kCubic * square;
  float slope_rest = fmaf(kCubic, square, -slope);
  slope_rest = fmaf(kCubicRest, square, slope_rest);
  slope_rest = fmaf(kCubic, fmaf(minus_x, minus_x, -square), slope_rest);
  const float linear = kLinear * minus_x;
  const float cubic = slope * minus_x;
  float rest = fmaf(kLinear, minus_x, -linear) + fmaf(slope, minus_x, -cubic);
  rest = fmaf(kLinearRest, minus_x, rest);
  rest = fmaf(slope_rest, minus_x, rest);
  // The rest matters where the exponent is large and positive, and then fmaxf is the larger term.
  const float large = fmaxf(linear, cubic);
  const float small = fminf(linear, cubic);
  const float exponent = large + small;
  rest += (large - exponent) + small;
  return x * fast_reciprocal(1.0f + exp2_of_sum(exponent, rest));
}

namespace coarse {

__device__ __forceinline__ float exp(float x) {
  return fast_exp2(kLog2E * x);
}

__device__ __forceinline__ float sqrt(float x) {
  float result;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __forceinline__ float reciprocal(float x) {
  return fast_reciprocal(x);
}

__device__ __forceinline__ float sigmoid(float x) {
  return fast_reciprocal(1.0f + fast_exp2(-kLog2E * x));
}

__device__ __forceinline__ float silu(float x) {
  return x * coarse::sigmoid(x);
}

__device__ __forceinline__ float tanh(float x) {
  const float result = fmaf(-2.0f, coarse::sigmoid(-2.0f * x), 1.0f);
  return fabsf(x) < 0.015625f ? x : result;
}

// As stof::gelu, with log2 Q(a) as a polynomial: one transcendental instruction instead of two.
__device__ __forceinline__ float gelu(float x) {
  const float a = fminf(fabsf(x), 13.5f);
  float log2_tail = 2.513312847e-08f;
  log2_tail = fmaf(log2_tail, a, -1.631028048e-06f);
  log2_tail = fmaf(log2_tail, a, 4.555201644e-05f);
  log2_tail = fmaf(log2_tail, a, -7.229008729e-04f);
  log2_tail = fmaf(log2_tail, a, 7.299758989e-03f);
  log2_tail = fmaf(log2_tail, a, -5.044014648e-02f);
  log2_tail = fmaf(log2_tail, a, -4.633148023e-01f);
  log2_tail = fmaf(log2_tail, a, -1.148743391e+00f);
  log2_tail = fmaf(log2_tail, a, -1.000210390e+00f);
  return fmaf(-a, fast_exp2(log2_tail), relu(x));
}

__device__ __forceinline__ float gelu_tanh(float x) {
  const float minus_slope = fmaf(-0.10294324f * x, x, -2.3022082f);
  return x * fast_reciprocal(1.0f + fast_exp2(x * minus_slope));
}

}  // namespace coarse

}  // namespace stof
