#include "fusion/segment_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "graph/encode.hpp"

namespace stof::fusion {

namespace {

// Hashes numbers one by one, for keys that stay in this process: most are of so few that a buffer
// for them would cost more than the hash. Each half is mixed as by SplitMix64.
class Words {
 public:
  void add(std::int64_t number) {
    const auto word = static_cast<std::uint64_t>(number);
    digest_.high = mix(digest_.high ^ word);
    digest_.low = mix(digest_.low + word);
  }
  void add(const base::Digest& digest) {
    add(static_cast<std::int64_t>(digest.high));
    add(static_cast<std::int64_t>(digest.low));
  }
  void add(const std::vector<std::int64_t>& numbers) {
    add(std::ssize(numbers));
    for (const std::int64_t number : numbers) {
      add(number);
    }
  }
  const base::Digest& digest() const { return digest_; }

 private:
  static std::uint64_t mix(std::uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
  }

  base::Digest digest_ = {.high = 0x9e3779b97f4a7c15, .low = 0x3c6ef372fe94f82a};
};

// What an operator means, whatever it reads.
base::Digest meaning(const graph::Operator& op) {
  base::Hasher hasher;
  graph::encode(hasher, op,
                {.value = [](int) { return std::uint64_t{0}; },
                 .dim = [](const Dim& dim) { return dim.text(); }});
  return hasher.digest();
}

int root_of(const graph::Ir& ir, int value) {
  int producer = graph::value_at(ir, value).producer;
  while (producer >= 0 && is_view(ir.operators[static_cast<std::size_t>(producer)])) {
    value = ir.operators[static_cast<std::size_t>(producer)].inputs[0];
    producer = graph::value_at(ir, value).producer;
  }
  return value;
}

}  // namespace

SegmentKeys::SegmentKeys(const graph::Ir& ir, const OperatorOrder& order, const Readers& readers,
                         const Placement& placement)
    : lies_(ir.values.size()), is_known_(ir.values.size(), false) {
  const std::vector<int> place_of = places_of(order, ir);
  std::vector<int> last_mention(ir.values.size(), -1);
  int mentions = 0;
  for (const SchemeOperator& one : order) {
    const graph::Operator& op = ir.operators[static_cast<std::size_t>(one.op)];
    Place& place = places_.emplace_back();
    place.first_mention = mentions;
    const auto mention = [&](int value) {
      place.same_as.push_back(
          std::exchange(last_mention[static_cast<std::size_t>(value)], mentions));
      ++mentions;
    };
    Words words;
    words.add(meaning(op));
    const std::vector<int> read = values_read(op);
    words.add(std::ssize(read));
    for (const int value : read) {
      mention(value);
      mention(root_of(ir, value));
      words.add(lie_of(ir, placement, value));
    }
    for (const int value : op.outputs) {
      mention(value);
      words.add(lie_of(ir, placement, value));
      int last = -1;
      for (const int reader : readers.of(value)) {
        const int at = reader == Readers::kBorder ? -1 : place_of[static_cast<std::size_t>(reader)];
        last = at < 0 ? kOutside : std::max(last, at);
      }
      place.last_readers.push_back(last);
    }
    place.digest = words.digest();
  }
}

base::Digest SegmentKeys::key(const Segment& segment) const {
  From from(*this, segment.begin);
  for (int count = segment.size(); count > 0; --count) {
    from.add();
  }
  return from.key();
}

// How far back within the segment each value was mentioned, 0 where it was not, says which values
// are the same.
void SegmentKeys::From::add() {
  const Place& place = keys_.places_[static_cast<std::size_t>(end_++)];
  const int begin = keys_.places_[static_cast<std::size_t>(begin_)].first_mention;
  Words words;
  words.add(read_);
  words.add(place.digest);
  int mention = place.first_mention;
  for (const int before : place.same_as) {
    words.add(before >= begin ? mention - before : 0);
    ++mention;
  }
  read_ = words.digest();
}

base::Digest SegmentKeys::From::key() const {
  Words words;
  words.add(read_);
  std::uint64_t bits = 1;  // of each result in order, behind a first one
  for (int index = begin_; index < end_; ++index) {
    for (const int last : keys_.places_[static_cast<std::size_t>(index)].last_readers) {
      if (bits >> 63 != 0) {
        words.add(static_cast<std::int64_t>(std::exchange(bits, 1)));
      }
      bits = bits << 1 | (last >= end_ ? 1 : 0);
    }
  }
  words.add(static_cast<std::int64_t>(bits));
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

}  // namespace stof::fusion
