#include "fusion/scheme.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "fusion/match.hpp"
#include "graph/canonical.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

using graph::OpClass;
using graph::OpKind;

constexpr int kMostComputeIntensive = 2;  // of a segment
constexpr std::size_t kHexBits = 4;

// The places of the operators that make a value, through views; none for inputs and weights.
void add_sources(const graph::Ir& ir, const std::vector<int>& places, int value,
                 std::vector<int>& sources) {
  const int producer = ir.values[static_cast<std::size_t>(value)]->producer;
  if (producer < 0) {
    return;
  }
  if (const int place = places[static_cast<std::size_t>(producer)]; place >= 0) {
    sources.push_back(place);
    return;
  }
  for (const int input : values_read(ir.operators[static_cast<std::size_t>(producer)])) {
    add_sources(ir, places, input, sources);
  }
}

void sort_unique(std::vector<int>& places) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

// Pinned operators are those of an attention that normalise() took apart.
bool is_of_attention(const graph::Operator& op) {
  return op.kind == OpKind::Attention || op.segment >= 0;
}

bool is_inside(const Segment& segment, int place) {
  return place >= segment.begin && place < segment.end;
}

// The attentions of a segment, whole ones and pinned ones, and compute-intensive operators beside
// them.
struct Attentions {
  int count = 0;
  int others = 0;
};

Attentions attentions(const OperatorOrder& order, const Segment& segment) {
  Attentions found;
  std::vector<int> pinned;
  for (int place = segment.begin; place < segment.end; ++place) {
    const SchemeOperator& op = order[static_cast<std::size_t>(place)];
    if (op.is_attention && op.pinned >= 0) {
      pinned.push_back(op.pinned);
    } else if (op.is_attention) {
      ++found.count;
    } else if (op.is_compute_intensive) {
      ++found.others;
    }
  }
  sort_unique(pinned);
  found.count += static_cast<int>(pinned.size());
  return found;
}

bool cuts_pinned(const OperatorOrder& order, int boundary) {
  const auto place = static_cast<std::size_t>(boundary);
  return boundary > 0 && place < order.size() && order[place].pinned >= 0 &&
         order[place].pinned == order[place - 1].pinned;
}

}  // namespace

OperatorOrder operator_order(const graph::Ir& ir) {
  OperatorOrder order;
  std::vector<int> places(ir.operators.size(), -1);
  for (const int index : graph::canonical_order(ir, graph::order_outputs(ir))) {
    const graph::Operator& op = ir.operators[static_cast<std::size_t>(index)];
    const OpClass op_class = graph::op_info(op.kind).op_class;
    if (op_class == OpClass::View) {
      continue;
    }
    SchemeOperator one{.op = index,
                       .is_compute_intensive = op_class == OpClass::ComputeIntensive,
                       .is_attention = is_of_attention(op),
                       .pinned = op.segment,
                       .reads = {},
                       .readers = {}};
    for (const int value : values_read(op)) {
      add_sources(ir, places, value, one.reads);
    }
    sort_unique(one.reads);
    const auto place = static_cast<int>(order.size());
    for (const int source : one.reads) {
      order[static_cast<std::size_t>(source)].readers.push_back(place);
    }
    places[static_cast<std::size_t>(index)] = place;
    order.push_back(std::move(one));
  }
  for (const graph::Output& output : ir.outputs) {
    std::vector<int> sources;
    add_sources(ir, places, output.value, sources);
    for (const int source : sources) {
      order[static_cast<std::size_t>(source)].is_output = true;
    }
  }
  return order;
}

std::vector<int> places_of(const OperatorOrder& order, const graph::Ir& ir) {
  std::vector<int> places(ir.operators.size(), -1);
  for (std::size_t place = 0; place < order.size(); ++place) {
    places[static_cast<std::size_t>(order[place].op)] = static_cast<int>(place);
  }
  return places;
}

Scheme::Scheme(std::vector<bool> digits) : digits_(std::move(digits)) {
  if (!digits_.empty() && digits_.front()) {
    digits_.flip();
  }
}

Scheme Scheme::of_segments(const std::vector<Segment>& segments) {
  std::vector<bool> digits;
  bool digit = false;
  for (const Segment& segment : segments) {
    STOF_CHECK(segment.begin == static_cast<int>(digits.size()) && segment.size() > 0)
        << "a segment from " << segment.begin << " to " << segment.end << " behind "
        << digits.size() << " operators";
    digits.insert(digits.end(), static_cast<std::size_t>(segment.size()), digit);
    digit = !digit;
  }
  return Scheme(std::move(digits));
}

Scheme Scheme::of_single_operators(std::size_t count) {
  std::vector<bool> digits;
  for (std::size_t place = 0; place < count; ++place) {
    digits.push_back(place % 2 != 0);
  }
  return Scheme(std::move(digits));
}

Scheme Scheme::from_hex(std::string_view text, std::size_t count) {
  const std::size_t length = (count + kHexBits - 1) / kHexBits;
  if (text.size() != length) {
    throw GraphError(fmt::format("scheme: '{}' has {} hex digits, {} operators take {}", text,
                                 text.size(), count, length));
  }
  std::vector<bool> bits;
  for (const char c : text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t value = kDigits.find(c);
    if (value == std::string_view::npos) {
      throw GraphError(fmt::format("scheme: '{}' in '{}' is no hex digit", c, text));
    }
    for (std::size_t bit = kHexBits; bit-- > 0;) {
      bits.push_back((value >> bit & 1) != 0);
    }
  }
  // In front of the first operator stand zeros, and its own digit is one.
  const auto first = bits.begin() + static_cast<std::ptrdiff_t>(bits.size() - count);
  if (std::find(bits.begin(), count == 0 ? bits.end() : first + 1, true) !=
      (count == 0 ? bits.end() : first + 1)) {
    throw GraphError(
        fmt::format("scheme: '{}' does not start with the digit 0 for {} operators", text, count));
  }
  return Scheme(std::vector<bool>(first, bits.end()));
}

Scheme Scheme::from_text(std::string_view text) {
  std::vector<bool> digits;
  for (const char c : text) {
    if (c == '0' || c == '1') {
      digits.push_back(c == '1');
    } else if (c != ' ') {
      throw GraphError(fmt::format("scheme: '{}' in '{}' is no binary digit", c, text));
    }
  }
  return Scheme(std::move(digits));
}

std::vector<Segment> Scheme::segments() const {
  std::vector<Segment> segments;
  for (std::size_t place = 0; place < digits_.size(); ++place) {
    if (place == 0 || digits_[place] != digits_[place - 1]) {
      segments.push_back({.begin = static_cast<int>(place), .end = static_cast<int>(place)});
    }
    ++segments.back().end;
  }
  return segments;
}

std::string Scheme::hex() const {
  std::string text;
  std::size_t value = 0;
  for (std::size_t place = 0; place < digits_.size(); ++place) {
    value = 2 * value + (digits_[place] ? 1 : 0);
    if ((digits_.size() - place - 1) % kHexBits == 0) {
      text += fmt::format("{:x}", value);
      value = 0;
    }
  }
  return text;
}

std::string Scheme::text() const {
  std::string text;
  for (std::size_t place = 0; place < digits_.size(); ++place) {
    if (place > 0 && digits_[place] != digits_[place - 1]) {
      text += ' ';
    }
    text += digits_[place] ? '1' : '0';
  }
  return text;
}

int compute_intensive(const OperatorOrder& order, const Segment& segment) {
  return static_cast<int>(std::count_if(order.begin() + segment.begin, order.begin() + segment.end,
                                        [](const auto& op) { return op.is_compute_intensive; }));
}

std::optional<std::string> illegality(const OperatorOrder& order, const Segment& segment,
                                      const MayEscape& may_escape) {
  for (const int boundary : {segment.begin, segment.end}) {
    if (cuts_pinned(order, boundary)) {
      return fmt::format("it cuts pinned operators apart at {}", boundary);
    }
  }
  const Attentions found = attentions(order, segment);
  if (found.count > 1 || (found.count == 1 && found.others > 0)) {
    return "an attention stands with another compute-intensive operator";
  }
  const int compute = compute_intensive(order, segment);
  if (found.count == 0 && compute > kMostComputeIntensive) {
    return fmt::format("it has {} compute-intensive operators, the most is {}", compute,
                       kMostComputeIntensive);
  }
  for (int place = segment.begin; place + 1 < segment.end; ++place) {
    const SchemeOperator& op = order[static_cast<std::size_t>(place)];
    const bool is_read_inside = std::any_of(op.readers.begin(), op.readers.end(),
                                            [&](int reader) { return is_inside(segment, reader); });
    if (!is_read_inside) {
      return fmt::format("nothing in it reads what operator {} gives", place);
    }
    const bool escapes =
        op.is_output || std::any_of(op.readers.begin(), op.readers.end(),
                                    [&](int reader) { return !is_inside(segment, reader); });
    if (escapes && !may_escape(segment, place)) {
      return fmt::format("the result of operator {} is read outside", place);
    }
  }
  return std::nullopt;
}

bool is_legal(const OperatorOrder& order, const Scheme& scheme, const MayEscape& may_escape) {
  STOF_CHECK(order.size() == scheme.digits().size())
      << "a scheme of " << scheme.digits().size() << " digits for " << order.size() << " operators";
  const std::vector<Segment> segments = scheme.segments();
  return std::none_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return illegality(order, segment, may_escape).has_value();
  });
}

}  // namespace stof::fusion
