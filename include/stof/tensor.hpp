#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stof/dtype.hpp"

namespace stof {

// Values of symbolic dims by name: {{"seq", 317}}.
using DimValues = std::map<std::string, std::int64_t>;

// One extent of a shape: an integer, or a polynomial with integer coefficients over named dims,
// such as 2 * seq + 1. Kept in one canonical form, so equal extents compare equal. Arithmetic
// throws GraphError on overflow of 64 bits.
class Dim {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a shape is written {8, seq, 768}
  Dim(std::int64_t value = 0);

  // A named dim with its inclusive range, 0 <= min <= max. Throws GraphError on a bad range or
  // name. One name has one range wherever it meets itself.
  static Dim symbol(const std::string& name, std::int64_t min, std::int64_t max);

  bool is_static() const;
  std::int64_t value() const;  // throws GraphError where symbolic
  // Throws GraphError where a symbol has no value or one out of its range.
  std::int64_t value(const DimValues& values) const;
  // Bounds over the ranges of its symbols; exact where no symbol stands in two terms.
  std::int64_t min() const;
  std::int64_t max() const;
  bool divisible_by(std::int64_t divisor) const;  // for every value of its symbols
  std::string text() const;                       // "317", "seq", "2 * seq + 1"

  // Symbols in it: name -> {min, max}.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> symbols() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim operator/(const Dim& a, const Dim& b);  // exact; throws GraphError where it is not
  friend bool operator==(const Dim& a, const Dim& b) { return a.terms_ == b.terms_; }

 private:
  struct Symbol {
    std::string name;
    std::int64_t min = 0;
    std::int64_t max = 0;
    friend bool operator==(const Symbol&, const Symbol&) = default;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in what the compiler generates
    friend auto operator<=>(const Symbol&, const Symbol&) = default;
  };
  using Product = std::vector<Symbol>;  // in order of name; the empty product is 1

  // Graded order, highest degree first: the order of text(), with the leading term in front.
  struct GradedOrder {
    bool operator()(const Product& a, const Product& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };

  void add_term(const Product& product, std::int64_t coefficient);
  Dim times_term(const Product& product, std::int64_t coefficient) const;
  template <typename ValueOf>
  std::optional<std::int64_t> evaluate(ValueOf value_of) const;
  std::int64_t bound(bool is_upper) const;
  std::int64_t degree_in(const std::string& name) const;
  std::int64_t remainder_at(const DimValues& point, std::int64_t divisor) const;

  std::map<Product, std::int64_t, GradedOrder> terms_;  // no coefficient is 0
};

// The extents of a tensor, outermost first.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  static Shape of(std::span<const std::int64_t> sizes);

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int axis) const;  // negative counts from the end; throws GraphError
  std::span<const Dim> dims() const { return dims_; }

  bool is_static() const;
  // Both throw GraphError as Dim::value does, and on a negative extent.
  std::vector<std::int64_t> sizes() const;
  std::vector<std::int64_t> sizes(const DimValues& values) const;
  Dim element_count() const;
  std::string text() const;  // "[8, seq, 768]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<Dim> dims_;
};

enum class Location : std::uint8_t { Host, Device };

// A tensor in memory that somebody else owns. The library writes only through views of outputs.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::Float32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in elements; empty means contiguous
  Location location = Location::Host;

  // Both throw GraphError on a negative extent, on overflow or on strides of another rank.
  std::int64_t element_count() const;
  bool is_contiguous() const;
};

struct NamedTensor {
  std::string name;
  TensorView view;
};

// A contiguous tensor in host memory.
class HostTensor {
 public:
  HostTensor() = default;  // float32, shape [0]
  // Zeros. Throws GraphError on a bad shape.
  HostTensor(DType dtype, std::vector<std::int64_t> shape);
  // Copies any host view. Throws GraphError where it is of device memory or not a tensor.
  explicit HostTensor(const TensorView& view);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t element_count() const;
  std::span<std::byte> bytes() { return storage_; }
  std::span<const std::byte> bytes() const { return storage_; }
  TensorView view();  // valid until this tensor moves or dies

  // The element at a row-major position, converted; floats round to nearest even, and a value that
  // an integer dtype cannot hold throws GraphError.
  double at(std::int64_t position) const;
  void set(std::int64_t position, double value);

  // Every element converted as by set(), rounded once. Throws GraphError.
  HostTensor cast(DType dtype) const;

 private:
  DType dtype_ = DType::Float32;
  std::vector<std::int64_t> shape_ = {0};
  std::vector<std::byte> storage_;
};

}  // namespace stof
