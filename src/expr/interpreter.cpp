#include "expr/interpreter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "expr/semantics.hpp"
#include "expr/table.hpp"

namespace stof::expr {

namespace {

using Kernel = void (*)(Lanes& result, const Lanes& a, const Lanes& b, const Lanes& c, int count);

template <auto kFunction>
void unary(Lanes& result, const Lanes& a, const Lanes&, const Lanes&, int count) {
  const int lanes = a.is_uniform ? 1 : count;
  for (int i = 0; i < lanes; ++i) {
    result.words[i] = kFunction(a.words[i]);
  }
  result.is_uniform = a.is_uniform;
}

template <auto kFunction>
void binary(Lanes& result, const Lanes& a, const Lanes& b, const Lanes&, int count) {
  const std::int64_t first = a.words[0];
  const std::int64_t second = b.words[0];
  const bool is_uniform = a.is_uniform && b.is_uniform;
  if (is_uniform) {
    result.words[0] = kFunction(first, second);
  } else if (b.is_uniform) {
    for (int i = 0; i < count; ++i) {
      result.words[i] = kFunction(a.words[i], second);
    }
  } else if (a.is_uniform) {
    for (int i = 0; i < count; ++i) {
      result.words[i] = kFunction(first, b.words[i]);
    }
  } else {
    for (int i = 0; i < count; ++i) {
      result.words[i] = kFunction(a.words[i], b.words[i]);
    }
  }
  result.is_uniform = is_uniform;
}

// Division takes some twenty cycles; by the powers of two that block sizes are, a shift does.
void divide(Lanes& result, const Lanes& a, const Lanes& b, const Lanes& c, int count) {
  if (!a.is_uniform && b.is_uniform && is_power_of_two(b.words[0])) {
    const int shift = std::countr_zero(bits_of(b.words[0]));
    for (int i = 0; i < count; ++i) {
      result.words[i] = a.words[i] >> shift;
    }
    result.is_uniform = false;
    return;
  }
  binary<floor_div>(result, a, b, c, count);
}

void modulo(Lanes& result, const Lanes& a, const Lanes& b, const Lanes& c, int count) {
  if (!a.is_uniform && b.is_uniform && is_power_of_two(b.words[0])) {
    const std::int64_t mask = b.words[0] - 1;
    for (int i = 0; i < count; ++i) {
      result.words[i] = a.words[i] & mask;
    }
    result.is_uniform = false;
    return;
  }
  binary<floor_mod>(result, a, b, c, count);
}

void choose(Lanes& result, const Lanes& condition, const Lanes& a, const Lanes& b, int count) {
  if (condition.is_uniform) {
    const Lanes& chosen = condition.words[0] != 0 ? a : b;
    if (&result != &chosen) {
      const int lanes = chosen.is_uniform ? 1 : count;
      std::copy_n(chosen.words.begin(), lanes, result.words.begin());
      result.is_uniform = chosen.is_uniform;
    }
    return;
  }
  const std::int64_t first_a = a.words[0];
  const std::int64_t first_b = b.words[0];
  const bool is_uniform_a = a.is_uniform;
  const bool is_uniform_b = b.is_uniform;
  for (int i = 0; i < count; ++i) {
    const std::int64_t from_a = is_uniform_a ? first_a : a.words[i];
    const std::int64_t from_b = is_uniform_b ? first_b : b.words[i];
    result.words[i] = condition.words[i] != 0 ? from_a : from_b;
  }
  result.is_uniform = false;
}

// The operations on words. Truth values are 0 or 1, so that bits serve for logic.
template <template <typename> typename Compare>
constexpr auto kCompareIntegers =
    [](std::int64_t a, std::int64_t b) -> std::int64_t { return Compare<std::int64_t>()(a, b); };
template <template <typename> typename Compare>
constexpr auto kCompareFloats = [](std::int64_t a, std::int64_t b) -> std::int64_t {
  return Compare<double>()(float_of(a), float_of(b));
};
template <double (*kFunction)(double)>
constexpr auto kOnFloat = [](std::int64_t a) { return word_of(kFunction(float_of(a))); };
template <double (*kFunction)(double, double)>
constexpr auto kOnFloats =
    [](std::int64_t a, std::int64_t b) { return word_of(kFunction(float_of(a), float_of(b))); };
template <template <typename> typename Arithmetic>
constexpr auto kArithmetic = [](std::int64_t a, std::int64_t b) {
  return word_of(Arithmetic<double>()(float_of(a), float_of(b)));
};
constexpr auto kNot = [](std::int64_t a) -> std::int64_t { return a ^ 1; };
constexpr auto kBitNot = [](std::int64_t a) { return ~a; };
constexpr auto kAnd = [](std::int64_t a, std::int64_t b) { return a & b; };
constexpr auto kOr = [](std::int64_t a, std::int64_t b) { return a | b; };
constexpr auto kXor = [](std::int64_t a, std::int64_t b) { return a ^ b; };
constexpr auto kMin = [](std::int64_t a, std::int64_t b) { return std::min(a, b); };
constexpr auto kMax = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
constexpr auto kNegateFloat = [](std::int64_t a) { return word_of(-float_of(a)); };
constexpr auto kToFloat = [](std::int64_t a) { return word_of(static_cast<double>(a)); };
constexpr auto kToInteger = [](std::int64_t a) { return to_integer(float_of(a)); };

struct TypedKernel {
  Op op;
  Kernel kernel;
};

constexpr TypedKernel kAnyKernels[] = {
    {Op::Not, unary<kNot>},
    {Op::And, binary<kAnd>},
    {Op::Or, binary<kOr>},
    {Op::Select, choose},
};

constexpr TypedKernel kIntegerKernels[] = {
    {Op::Negate, unary<wrap_negate>},
    {Op::BitNot, unary<kBitNot>},
    {Op::Abs, unary<wrap_abs>},
    {Op::ToFloat, unary<kToFloat>},
    {Op::Mix, unary<mix>},
    {Op::Add, binary<wrap_add>},
    {Op::Subtract, binary<wrap_subtract>},
    {Op::Multiply, binary<wrap_multiply>},
    {Op::Divide, divide},
    {Op::Modulo, modulo},
    {Op::CeilDiv, binary<static_cast<std::int64_t (*)(std::int64_t, std::int64_t)>(ceil_div)>},
    {Op::BitAnd, binary<kAnd>},
    {Op::BitOr, binary<kOr>},
    {Op::BitXor, binary<kXor>},
    {Op::ShiftLeft, binary<shift_left>},
    {Op::ShiftRight, binary<shift_right>},
    {Op::ShiftRightLogical,
     binary<static_cast<std::int64_t (*)(std::int64_t, std::int64_t)>(shift_right_logical)>},
    {Op::Min, binary<kMin>},
    {Op::Max, binary<kMax>},
    {Op::Equal, binary<kCompareIntegers<std::equal_to>>},
    {Op::NotEqual, binary<kCompareIntegers<std::not_equal_to>>},
    {Op::Less, binary<kCompareIntegers<std::less>>},
    {Op::LessEqual, binary<kCompareIntegers<std::less_equal>>},
    {Op::Greater, binary<kCompareIntegers<std::greater>>},
    {Op::GreaterEqual, binary<kCompareIntegers<std::greater_equal>>},
};

constexpr TypedKernel kFloatKernels[] = {
    {Op::Negate, unary<kNegateFloat>},
    {Op::Abs, unary<kOnFloat<std::fabs>>},
    {Op::ToInt, unary<kToInteger>},
    {Op::Exp, unary<kOnFloat<std::exp>>},
    {Op::Log, unary<kOnFloat<std::log>>},
    {Op::Sqrt, unary<kOnFloat<std::sqrt>>},
    {Op::Tanh, unary<kOnFloat<std::tanh>>},
    {Op::Add, binary<kArithmetic<std::plus>>},
    {Op::Subtract, binary<kArithmetic<std::minus>>},
    {Op::Multiply, binary<kArithmetic<std::multiplies>>},
    {Op::Divide, binary<kArithmetic<std::divides>>},
    {Op::Min, binary<kOnFloats<std::fmin>>},
    {Op::Max, binary<kOnFloats<std::fmax>>},
    {Op::Equal, binary<kCompareFloats<std::equal_to>>},
    {Op::NotEqual, binary<kCompareFloats<std::not_equal_to>>},
    {Op::Less, binary<kCompareFloats<std::less>>},
    {Op::LessEqual, binary<kCompareFloats<std::less_equal>>},
    {Op::Greater, binary<kCompareFloats<std::greater>>},
    {Op::GreaterEqual, binary<kCompareFloats<std::greater_equal>>},
};

Kernel find(std::span<const TypedKernel> kernels, Op op) {
  const auto found = std::ranges::find(kernels, op, &TypedKernel::op);
  return found == kernels.end() ? nullptr : found->kernel;
}

Kernel kernel_of(const Instruction& instruction) {
  if (const Kernel kernel = find(kAnyKernels, instruction.op)) {
    return kernel;
  }
  // Truth values compare as integers.
  return find(instruction.type == ScalarType::Float ? std::span<const TypedKernel>(kFloatKernels)
                                                    : std::span<const TypedKernel>(kIntegerKernels),
              instruction.op);
}

bool reads_something(Op op) {
  return op == Op::Constant || op == Op::Scalar || op == Op::Table || op == Op::Capture;
}

}  // namespace

Interpreter::Interpreter(Program program, CaptureReader read)
    : program_(std::move(program)), read_(std::move(read)), slots_(program_.slots) {
  STOF_CHECK(program_.captures.empty() || read_) << "captures and no reader";
  for (const Instruction& instruction : program_.code) {
    kernels_.push_back(kernel_of(instruction));
    STOF_CHECK((kernels_.back() != nullptr) != reads_something(instruction.op))
        << "operation " << info(instruction.op).text;
  }
}

std::span<const std::int64_t> Interpreter::run(std::span<const std::int64_t> scalars,
                                               std::optional<int> varying, int count,
                                               const ListedScalar& listed) {
  STOF_CHECK(scalars.size() == program_.scalars.size()) << scalars.size() << " scalars";
  STOF_CHECK(count >= 1 && count <= kLanes) << count << " points";
  for (std::size_t at = 0; at < program_.code.size(); ++at) {
    step(slots_, at, scalars, varying, count, listed);
  }
  Lanes& result = slots_[0];
  if (result.is_uniform) {
    std::fill_n(result.words.begin() + 1, count - 1, result.words[0]);
  }
  return {result.words.data(), static_cast<std::size_t>(count)};
}

std::int64_t Interpreter::run_one(std::span<const std::int64_t> scalars) const {
  STOF_CHECK(scalars.size() == program_.scalars.size()) << scalars.size() << " scalars";
  std::array<Lanes, kMaxSlots> slots;
  for (std::size_t at = 0; at < program_.code.size(); ++at) {
    step(slots, at, scalars, std::nullopt, 1, {});
  }
  return slots[0].words[0];
}

std::uint64_t Interpreter::run_bits(std::span<const std::int64_t> scalars,
                                    std::optional<int> varying, int count) {
  std::uint64_t bits = 0;
  int lane = 0;
  for (const std::int64_t truth : run(scalars, varying, count)) {
    bits |= static_cast<std::uint64_t>(truth != 0) << lane++;
  }
  return bits;
}

void Interpreter::step(std::span<Lanes> slots, std::size_t at,
                       std::span<const std::int64_t> scalars, std::optional<int> varying, int count,
                       const ListedScalar& listed) const {
  const Instruction& instruction = program_.code[at];
  Lanes& result = slots[instruction.destination];
  if (const Kernel kernel = kernels_[at]) {
    kernel(result, slots[instruction.operands[0]], slots[instruction.operands[1]],
           slots[instruction.operands[2]], count);
    return;
  }
  if (instruction.op == Op::Table) {
    read_table(slots, instruction, count);
    return;
  }
  if (instruction.op == Op::Capture) {
    read_capture(slots, instruction, count);
    return;
  }
  const bool is_scalar = instruction.op == Op::Scalar;
  if (is_scalar && listed.scalar == static_cast<int>(instruction.index)) {
    std::copy_n(listed.words.begin(), count, result.words.begin());
    result.is_uniform = false;
    return;
  }
  result.words[0] = is_scalar ? scalars[instruction.index] : program_.constants[instruction.index];
  result.is_uniform = !is_scalar || varying != static_cast<int>(instruction.index);
  for (int i = 1; !result.is_uniform && i < count; ++i) {
    result.words[i] = wrap_add(result.words[0], i);
  }
}

void Interpreter::read_table(std::span<Lanes> slots, const Instruction& instruction,
                             int count) const {
  const std::vector<std::int64_t>& entries = program_.tables[instruction.index].data().entries;
  const Lanes& index = slots[instruction.operands[0]];
  Lanes& result = slots[instruction.destination];
  const int lanes = index.is_uniform ? 1 : count;
  const std::int64_t last = std::ssize(entries) - 1;
  for (int i = 0; i < lanes; ++i) {
    result.words[i] = entries[std::clamp<std::int64_t>(index.words[i], 0, last)];
  }
  result.is_uniform = index.is_uniform;
}

void Interpreter::read_capture(std::span<Lanes> slots, const Instruction& instruction,
                               int count) const {
  const int rank = program_.captures[instruction.index].rank();
  bool is_uniform = true;
  for (int i = 0; i < rank; ++i) {
    is_uniform = is_uniform && slots[instruction.operands[i]].is_uniform;
  }
  Lanes& result = slots[instruction.destination];
  const int lanes = is_uniform ? 1 : count;
  std::array<std::int64_t, 4> indices{};
  std::array<std::int64_t, kLanes> words{};  // the result may lie where an index is still needed
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < rank; ++i) {
      const Lanes& index = slots[instruction.operands[i]];
      indices[i] = index.words[index.is_uniform ? 0 : lane];
    }
    words[lane] = read_(static_cast<int>(instruction.index),
                        std::span(indices).first(static_cast<std::size_t>(rank)));
  }
  std::copy_n(words.begin(), lanes, result.words.begin());
  result.is_uniform = is_uniform;
}

}  // namespace stof::expr
