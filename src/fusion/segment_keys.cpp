#include "fusion/segment_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "graph/encode.hpp"

namespace stof::fusion {

namespace {

// Hashes numbers, in one go.
class Words {
 public:
  void add(std::int64_t word) { words_.push_back(static_cast<std::uint64_t>(word)); }
  void add(const base::Digest& digest) {
    words_.push_back(digest.high);
    words_.push_back(digest.low);
  }
  void add(const std::vector<std::int64_t>& numbers) {
    add(std::ssize(numbers));
    for (const std::int64_t number : numbers) {
      add(number);
    }
  }
  base::Digest digest() const { return base::hash(std::as_bytes(std::span(words_))); }

 private:
  std::vector<std::uint64_t> words_;
};

// What an operator means, whatever it reads.
base::Digest meaning(const graph::Operator& op) {
  base::Hasher hasher;
  graph::encode(hasher, op,
                {.value = [](int) { return std::uint64_t{0}; },
                 .dim = [](const Dim& dim) { return dim.text(); }});
  return hasher.digest();
}

// Numbers values in the order in which they are met.
class Numbers {
 public:
  int of(int value) {
    const auto known = std::find(values_.begin(), values_.end(), value);
    if (known == values_.end()) {
      values_.push_back(value);
      return static_cast<int>(values_.size()) - 1;
    }
    return static_cast<int>(known - values_.begin());
  }

 private:
  std::vector<int> values_;
};

}  // namespace

SegmentKeys::SegmentKeys(const graph::Ir& ir, const OperatorOrder& order,
                         const Placement& placement)
    : lies_(ir.values.size()), is_known_(ir.values.size(), false) {
  const Readers readers(ir);
  const std::vector<int> place_of = places_of(order, ir);
  for (const SchemeOperator& one : order) {
    const graph::Operator& op = ir.operators[static_cast<std::size_t>(one.op)];
    Place place{.meaning = meaning(op), .operands = {}, .results = {}};
    for (const int value : values_read(op)) {
      lie_of(ir, placement, value);
      place.operands.push_back({.value = value, .root = root_of(ir, value)});
    }
    for (const int value : op.outputs) {
      lie_of(ir, placement, value);
      Result result{.value = value, .is_output = false, .readers = {}};
      for (const int reader : readers.of(value)) {
        if (reader == Readers::kBorder) {
          result.is_output = true;
        } else {
          result.readers.push_back(place_of[static_cast<std::size_t>(reader)]);
        }
      }
      place.results.push_back(std::move(result));
    }
    places_.push_back(std::move(place));
  }
}

base::Digest SegmentKeys::key(const Segment& segment) const {
  Words words;
  Numbers numbers;
  for (int index = segment.begin; index < segment.end; ++index) {
    const Place& place = places_[static_cast<std::size_t>(index)];
    words.add(place.meaning);
    for (const Operand& operand : place.operands) {
      words.add(numbers.of(operand.value));
      words.add(numbers.of(operand.root));
      words.add(lies_[static_cast<std::size_t>(operand.value)]);
    }
    for (const Result& result : place.results) {
      words.add(numbers.of(result.value));
      words.add(lies_[static_cast<std::size_t>(result.value)]);
      const bool is_read_outside =
          result.is_output ||
          std::any_of(result.readers.begin(), result.readers.end(),
                      [&](int reader) { return reader < segment.begin || reader >= segment.end; });
      words.add(is_read_outside ? 1 : 0);
    }
  }
  return words.digest();
}

// Of a view, what it is a view of and how; of other values their type and strides.
base::Digest SegmentKeys::lie_of(const graph::Ir& ir, const Placement& placement, int value) {
  const auto index = static_cast<std::size_t>(value);
  if (is_known_[index]) {
    return lies_[index];
  }
  Words words;
  const int producer = graph::value_at(ir, value).producer;
  if (producer >= 0 && is_view(ir.operators[static_cast<std::size_t>(producer)])) {
    const graph::Operator& view = ir.operators[static_cast<std::size_t>(producer)];
    words.add(lie_of(ir, placement, view.inputs[0]));
    words.add(meaning(view));
  } else {
    const View root = placement.root(value);
    words.add(static_cast<std::int64_t>(root.dtype));
    words.add(root.extents);
    words.add(root.strides);
  }
  is_known_[index] = true;
  return lies_[index] = words.digest();
}

int SegmentKeys::root_of(const graph::Ir& ir, int value) const {
  int producer = graph::value_at(ir, value).producer;
  while (producer >= 0 && is_view(ir.operators[static_cast<std::size_t>(producer)])) {
    value = ir.operators[static_cast<std::size_t>(producer)].inputs[0];
    producer = graph::value_at(ir, value).producer;
  }
  return value;
}

}  // namespace stof::fusion
