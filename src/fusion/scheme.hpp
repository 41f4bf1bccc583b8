#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.hpp"

// The code of a fusion scheme (Wang et al., "STOF", 2026, section 4.3): one binary digit for each
// operator in canonical order. Neighbours with equal digits form a segment, which one kernel runs.
namespace stof::fusion {

// Operators begin … end - 1 of an OperatorOrder.
struct Segment {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// An operator that carries a digit.
struct SchemeOperator {
  int op = -1;  // its index in the graph
  bool is_compute_intensive = false;
  bool is_attention = false;  // it takes part in one, or is one
  int pinned = -1;            // operators that share one >= 0 are never fused apart
  std::vector<int> reads;     // places of the operators whose results it reads, views or not
  std::vector<int> readers;   // places of those that read its results
  bool is_output = false;     // the graph gives out a result of it
};

// The operators of a graph that carry a digit, which views do not, in an order in which they can
// run and in which chains of single readers stand together (graph::canonicalise). What no output
// needs is left out.
using OperatorOrder = std::vector<SchemeOperator>;

OperatorOrder operator_order(const graph::Ir& ir);

// The place of each operator of the graph in the order; -1 for those that have none.
std::vector<int> places_of(const OperatorOrder& order, const graph::Ir& ir);

class Scheme {
 public:
  // The digits, or their complement, which says the same: the first digit is 0.
  explicit Scheme(std::vector<bool> digits);

  // Segments in order, the first from 0, each from the end of the one before it. Throws
  // InternalError where they are not that, or one is empty.
  static Scheme of_segments(const std::vector<Segment>& segments);
  static Scheme of_single_operators(std::size_t count);
  // The reverse of hex(). Throws GraphError: not `count` digits; the first is 1.
  static Scheme from_hex(std::string_view text, std::size_t count);
  // The reverse of text(), blanks or not; the digits may be the complement. Throws GraphError.
  static Scheme from_text(std::string_view text);

  const std::vector<bool>& digits() const { return digits_; }
  std::vector<Segment> segments() const;
  // The digits as one number, the first operator in the highest bit: "20e3" for 15 digits.
  std::string hex() const;
  // "0 1 00000 111 000 11"
  std::string text() const;

  friend bool operator==(const Scheme&, const Scheme&) = default;
  friend bool operator<(const Scheme& a, const Scheme& b) { return a.digits_ < b.digits_; }

 private:
  std::vector<bool> digits_;
};

int compute_intensive(const OperatorOrder& order, const Segment& segment);

// Whether the kernel of a segment can give out the result of one of its operators, besides that of
// the last one.
using MayEscape = std::function<bool(const Segment&, int place)>;

// Why no kernel can run the segment; nothing where one could. It cuts no pinned operators apart, it
// has at most two compute-intensive operators, and an attention none beside its own, each of its
// operators gives a result to a later one or is the last, and what others read of it but the
// last one's result may escape. Segments stand in an order in which the graph can run, so that no
// circle leads through one.
std::optional<std::string> illegality(const OperatorOrder& order, const Segment& segment,
                                      const MayEscape& may_escape);
bool is_legal(const OperatorOrder& order, const Scheme& scheme, const MayEscape& may_escape);

}  // namespace stof::fusion
