// A Dim is a sum of products of symbols, kept as a map from product to coefficient. Every symbol is
// at least 0, so a product grows with each of its symbols; bounds rest on that.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "stof/error.hpp"
#include "stof/tensor.hpp"

namespace stof {

namespace {

// What a shape needs is far below; a hostile graph could otherwise make sums without end.
constexpr std::size_t kMaxTerms = 256;
constexpr std::size_t kMaxDegree = 16;
constexpr std::size_t kMaxNameLength = 64;
constexpr std::int64_t kMaxTestPoints = 4096;

bool is_name(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= kMaxNameLength && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c); });
}

[[noreturn]] void throw_overflow(const std::string& what) {
  throw GraphError(fmt::format("dim: {} is over 64 bits", what));
}

// The point after this one in a box of both corners; empty after the last.
DimValues next_point(DimValues point, const DimValues& first, const DimValues& last) {
  for (auto& [name, value] : point) {
    if (value < last.at(name)) {
      ++value;
      return point;
    }
    value = first.at(name);
  }
  return {};
}

void check_ranges_agree(const Dim& a, const Dim& b) {
  const auto others = b.symbols();
  for (const auto& [name, range] : a.symbols()) {
    const auto found = others.find(name);
    if (found != others.end() && found->second != range) {
      throw GraphError(fmt::format("dim: {} has range [{}, {}] here and [{}, {}] there", name,
                                   range.first, range.second, found->second.first,
                                   found->second.second));
    }
  }
}

}  // namespace

Dim::Dim(std::int64_t value) {
  add_term({}, value);
}

Dim Dim::symbol(const std::string& name, std::int64_t min, std::int64_t max) {
  if (!is_name(name)) {
    throw GraphError(fmt::format(
        "dim: \"{}\" is no name: letters, digits and _, no digit first, at most {} of them",
        name.substr(0, kMaxNameLength), kMaxNameLength));
  }
  if (min < 0 || max < min) {
    throw GraphError(
        fmt::format("dim: {} has range [{}, {}], not 0 <= min <= max", name, min, max));
  }
  Dim dim;
  dim.add_term({Symbol{.name = name, .min = min, .max = max}}, 1);
  return dim;
}

bool Dim::is_static() const {
  return terms_.empty() || terms_.begin()->first.empty();
}

std::int64_t Dim::value() const {
  if (!is_static()) {
    throw GraphError(fmt::format("dim: {} is symbolic and has no value yet", text()));
  }
  return terms_.empty() ? 0 : terms_.begin()->second;
}

// The sum over the terms with value_of(symbol, coefficient) for each symbol; nothing on overflow.
template <typename ValueOf>
std::optional<std::int64_t> Dim::evaluate(ValueOf value_of) const {
  std::optional<std::int64_t> sum = 0;
  for (const auto& [product, coefficient] : terms_) {
    std::optional<std::int64_t> term = coefficient;
    for (const Symbol& symbol : product) {
      const std::int64_t value = value_of(symbol, coefficient);
      term = term ? base::checked_multiply(*term, value) : term;
    }
    sum = sum && term ? base::checked_add(*sum, *term) : std::nullopt;
  }
  return sum;
}

std::int64_t Dim::value(const DimValues& values) const {
  const auto value = evaluate([&](const Symbol& symbol, std::int64_t /*coefficient*/) {
    const auto found = values.find(symbol.name);
    if (found == values.end()) {
      throw GraphError(fmt::format("dim: {} has no value, dims must give one in [{}, {}]",
                                   symbol.name, symbol.min, symbol.max));
    }
    if (found->second < symbol.min || found->second > symbol.max) {
      throw GraphError(fmt::format("dim: {} = {} is outside [{}, {}]", symbol.name, found->second,
                                   symbol.min, symbol.max));
    }
    return found->second;
  });
  if (!value) {
    throw_overflow(text());
  }
  return *value;
}

std::int64_t Dim::min() const {
  return bound(/*is_upper=*/false);
}

std::int64_t Dim::max() const {
  return bound(/*is_upper=*/true);
}

std::int64_t Dim::bound(bool is_upper) const {
  const auto bound = evaluate([=](const Symbol& symbol, std::int64_t coefficient) {
    return (coefficient > 0) == is_upper ? symbol.max : symbol.min;
  });
  if (!bound) {
    throw_overflow(fmt::format("the {} of {}", is_upper ? "maximum" : "minimum", text()));
  }
  return *bound;
}

// Where a coefficient is no multiple, the polynomial may still be: seq * seq + seq is always even.
// By Newton's forward differences, a polynomial of degree k in a symbol is a multiple everywhere if
// it is one at k + 1 consecutive values of it.
bool Dim::divisible_by(std::int64_t divisor) const {
  if (divisor <= 0) {
    throw GraphError(fmt::format("dim: divisor {} of {} is not positive", divisor, text()));
  }
  if (std::ranges::all_of(terms_, [=](const auto& term) { return term.second % divisor == 0; })) {
    return true;
  }
  if (divisor > std::numeric_limits<std::int32_t>::max()) {
    return false;  // products of remainders would not fit
  }
  DimValues first;
  DimValues last;
  std::int64_t point_count = 1;
  for (const auto& [name, range] : symbols()) {
    const auto [min, max] = range;
    first[name] = min;
    last[name] = min + std::min(max - min, degree_in(name));
    point_count *= last[name] - min + 1;
    if (point_count > kMaxTestPoints) {
      return false;
    }
  }
  for (DimValues point = first; !point.empty(); point = next_point(point, first, last)) {
    if (remainder_at(point, divisor) != 0) {
      return false;
    }
  }
  return !first.empty();
}

std::int64_t Dim::degree_in(const std::string& name) const {
  std::int64_t degree = 0;
  for (const auto& [product, coefficient] : terms_) {
    degree = std::max<std::int64_t>(degree, std::ranges::count(product, name, &Symbol::name));
  }
  return degree;
}

std::int64_t Dim::remainder_at(const DimValues& point, std::int64_t divisor) const {
  std::int64_t sum = 0;
  for (const auto& [product, coefficient] : terms_) {
    std::int64_t term = coefficient % divisor;
    for (const Symbol& symbol : product) {
      term = term * (point.at(symbol.name) % divisor) % divisor;
    }
    sum = (sum + term) % divisor;
  }
  return sum;
}

std::string Dim::text() const {
  if (terms_.empty()) {
    return "0";
  }
  std::string text;
  for (const auto& [product, coefficient] : terms_) {
    const bool is_negative = coefficient < 0;
    const auto bits = static_cast<std::uint64_t>(coefficient);
    const std::uint64_t magnitude = is_negative ? 0 - bits : bits;
    std::vector<std::string> factors;
    if (magnitude != 1 || product.empty()) {
      factors.push_back(fmt::to_string(magnitude));
    }
    std::ranges::transform(product, std::back_inserter(factors), &Symbol::name);
    const std::string_view sign =
        text.empty() ? (is_negative ? "-" : "") : (is_negative ? " - " : " + ");
    text += fmt::format("{}{}", sign, fmt::join(factors, " * "));
  }
  return text;
}

std::map<std::string, std::pair<std::int64_t, std::int64_t>> Dim::symbols() const {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> symbols;
  for (const auto& [product, coefficient] : terms_) {
    for (const Symbol& symbol : product) {
      symbols.insert({symbol.name, {symbol.min, symbol.max}});
    }
  }
  return symbols;
}

void Dim::add_term(const Product& product, std::int64_t coefficient) {
  if (product.size() > kMaxDegree) {
    throw GraphError(fmt::format("dim: a product of {} symbols is over the limit of {}",
                                 product.size(), kMaxDegree));
  }
  const auto found = terms_.find(product);
  const auto sum = base::checked_add(found == terms_.end() ? 0 : found->second, coefficient);
  if (!sum) {
    throw_overflow(fmt::format("a coefficient of {}", text()));
  }
  if (*sum != 0) {
    terms_[product] = *sum;
  } else if (found != terms_.end()) {
    terms_.erase(found);
  }
  if (terms_.size() > kMaxTerms) {
    throw GraphError(fmt::format("dim: a sum of more than {} terms", kMaxTerms));
  }
}

Dim Dim::times_term(const Product& product, std::int64_t coefficient) const {
  Dim result;
  for (const auto& [own, own_coefficient] : terms_) {
    Product merged;
    std::ranges::merge(own, product, std::back_inserter(merged));
    const auto scaled = base::checked_multiply(own_coefficient, coefficient);
    if (!scaled) {
      throw_overflow(fmt::format("{} times {}", text(), coefficient));
    }
    result.add_term(merged, *scaled);
  }
  return result;
}

Dim operator+(const Dim& a, const Dim& b) {
  check_ranges_agree(a, b);
  Dim sum = a;
  for (const auto& [product, coefficient] : b.terms_) {
    sum.add_term(product, coefficient);
  }
  return sum;
}

Dim operator-(const Dim& a, const Dim& b) {
  return a + b.times_term({}, -1);
}

Dim operator*(const Dim& a, const Dim& b) {
  check_ranges_agree(a, b);
  Dim result;
  for (const auto& [product, coefficient] : b.terms_) {
    result = result + a.times_term(product, coefficient);
  }
  return result;
}

// Polynomial long division: the graded order is kept by multiplication, so the leading term of the
// remainder falls with every step.
Dim operator/(const Dim& a, const Dim& b) {
  if (b.terms_.empty()) {
    throw GraphError(fmt::format("dim: {} is divided by 0", a.text()));
  }
  check_ranges_agree(a, b);
  const auto& [divisor, divisor_coefficient] = *b.terms_.begin();
  Dim quotient;
  Dim rest = a;
  while (!rest.terms_.empty()) {
    const auto& [leading, coefficient] = *rest.terms_.begin();
    const bool is_overflow =
        divisor_coefficient == -1 && coefficient == std::numeric_limits<std::int64_t>::min();
    if (is_overflow) {
      throw_overflow(fmt::format("{} divided by {}", a.text(), b.text()));
    }
    if (coefficient % divisor_coefficient != 0 || !std::ranges::includes(leading, divisor)) {
      throw GraphError(fmt::format("dim: {} does not divide {}", b.text(), a.text()));
    }
    Dim::Product product;
    std::ranges::set_difference(leading, divisor, std::back_inserter(product));
    const std::int64_t factor = coefficient / divisor_coefficient;
    quotient.add_term(product, factor);
    rest = rest - b.times_term(product, factor);
  }
  return quotient;
}

}  // namespace stof
