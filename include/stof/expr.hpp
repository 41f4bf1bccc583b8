#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "stof/dtype.hpp"

namespace stof {

// The types of the expression language: truth values, 64-bit integers, floating point.
enum class ScalarType : std::uint8_t { Bool, Int, Float };

namespace expr {
struct Node;
struct TableData;
}  // namespace expr

class Table;
class Capture;

// An immutable expression over named scalars, tables and captured tensors; copies share it.
//
// Every operation is total, on the CPU and in a kernel: integers wrap at 64 bits, `/` and `%` round
// towards minus infinity, x / 0 and x % 0 are 0, a shift takes its count modulo 64, an index
// outside a table or capture is moved to its nearest end. Integers meet floats as floats; floats
// divide as IEEE 754 says, and have no `%`. Building an expression whose types do not fit, or that
// has more than 65536 operations or 512 inside each other, throws ExpressionError.
class Expr {
 public:
  // Literals, so that k - q < 1024 reads as it should. A pointer is no truth value.
  Expr(double value);  // NOLINT(google-explicit-constructor)
  template <std::same_as<bool> T>
  Expr(T value) : Expr(truth(value)) {}  // NOLINT(google-explicit-constructor)
  template <std::integral T>
  requires(!std::same_as<T, bool>) Expr(T value)  // NOLINT(google-explicit-constructor)
      : Expr(integer(static_cast<std::int64_t>(value))) {}

  static Expr truth(bool value);
  static Expr integer(std::int64_t value);
  // A named scalar: parts of [A-Za-z0-9_] joined by dots, the first with a letter or _ in front,
  // such as q_pos or dim.hidden. The literals true, false, inf and nan are no names.
  static Expr scalar(std::string_view name, ScalarType type = ScalarType::Int);

  ScalarType type() const;

  // The one text form; parse(text()) gives the same expression, node for node.
  std::string text() const;

  const expr::Node& node() const { return *node_; }
  explicit Expr(std::shared_ptr<const expr::Node> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<const expr::Node> node_;
};

// What the names in a text stand for; mask_names() and score_names() have those of attention.
struct ExprNames {
  std::map<std::string, ScalarType, std::less<>> scalars;
  std::map<std::string, Table, std::less<>> tables;
  std::map<std::string, Capture, std::less<>> captures;
};

// Reads the text form, in which operators and their precedence are those of C, with `>>>` for the
// logical right shift. Throws ExpressionError with the column and what was expected there.
Expr parse_expression(std::string_view text, const ExprNames& names);

// Constant data that an expression indexes. It carries a digest of its values, and their minimum
// and maximum per 64 entries, which keep intervals tight. At least one entry.
class Table {
 public:
  Table(std::string name, std::vector<std::int64_t> values);
  Table(std::string name, std::vector<double> values);

  const std::string& name() const;
  ScalarType type() const;  // Int or Float
  std::int64_t size() const;
  Expr operator[](const Expr& index) const;  // table[index]

  const expr::TableData& data() const { return *data_; }

 private:
  std::shared_ptr<const expr::TableData> data_;
};

// A graph tensor that an expression reads at run time, of rank 1 to 4. Made by Graph::capture.
class Capture {
 public:
  Capture(std::string name, DType dtype, int rank);

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  ScalarType type() const;
  int rank() const { return rank_; }

  // capture[i, j, …]; as many indices as the rank.
  template <std::convertible_to<Expr>... Indices>
  Expr operator()(const Indices&... indices) const {
    return at({Expr(indices)...});
  }
  Expr at(std::vector<Expr> indices) const;

 private:
  std::string name_;
  DType dtype_;
  int rank_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator%(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);

Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);

// On truth values `&`, `|`, `^` and `~` are `&&`, `||`, `!=` and `!`; on integers they work on
// bits.
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);
Expr operator&(const Expr& a, const Expr& b);
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator~(const Expr& a);
Expr operator<<(const Expr& a, const Expr& b);
Expr operator>>(const Expr& a, const Expr& b);                     // keeps the sign
Expr shift_right_logical(const Expr& a, const Expr& b);            // a >>> b
Expr select(const Expr& condition, const Expr& a, const Expr& b);  // condition ? a : b

Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr abs(const Expr& a);
Expr ceil_div(const Expr& a, const Expr& b);
Expr to_float(const Expr& a);  // float(a), of an integer
Expr to_int(const Expr& a);    // int(a), of a float, towards zero; NaN gives 0, infinities the ends
Expr exp(const Expr& a);
Expr log(const Expr& a);
Expr sqrt(const Expr& a);
Expr tanh(const Expr& a);

// splitmix64 of a seed and two counters, as the 64 bits of an integer:
// mix(mix(mix(seed) ^ a) ^ b), where mix adds 0x9E3779B97F4A7C15 and finalises
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
Expr hash(const Expr& seed, const Expr& a, const Expr& b);
// hash(seed, a, b) >>> 33, modulo `count`.
Expr draw(const Expr& seed, const Expr& a, const Expr& b, const Expr& count);
// True for a fraction of all (a, b): hash(seed, a, b) >>> 40 below floor(fraction * 2^24).
Expr keep(const Expr& seed, const Expr& a, const Expr& b, double fraction);

}  // namespace stof
