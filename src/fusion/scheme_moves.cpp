#include "fusion/scheme_moves.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace stof::fusion {

namespace {

// Keeps a scheme that a move gave if the segments that it made are legal.
class Moves {
 public:
  Moves(const OperatorOrder& order, const Scheme& scheme, const MayEscape& may_escape)
      : order_(order), may_escape_(may_escape), segments_(scheme.segments()) {}

  const std::vector<Segment>& segments() const { return segments_; }
  int compute(std::size_t i) const { return compute_intensive(order_, segments_[i]); }
  bool has_compute(std::size_t i) const { return compute(i) > 0; }

  // The boundary between segments i and i + 1 moves to another place, perhaps as far as the next
  // boundary, which then is gone.
  void move_boundary(std::size_t i, int place) {
    std::vector<Segment> moved = segments_;
    moved[i].end = place;
    moved[i + 1].begin = place;
    for (const Segment& made : {moved[i], moved[i + 1]}) {
      if (made.size() > 0 && illegality(order_, made, may_escape_)) {
        return;
      }
    }
    std::erase_if(moved, [](const Segment& segment) { return segment.size() == 0; });
    Scheme scheme = Scheme::of_segments(moved);
    if (std::find(found_.begin(), found_.end(), scheme) == found_.end()) {
      found_.push_back(std::move(scheme));
    }
  }

  std::vector<Scheme> take() { return std::move(found_); }

 private:
  const OperatorOrder& order_;
  const MayEscape& may_escape_;
  std::vector<Segment> segments_;
  std::vector<Scheme> found_;
};

}  // namespace

std::vector<Scheme> expand(const OperatorOrder& order, const Scheme& scheme,
                           const MayEscape& may_escape) {
  Moves moves(order, scheme, may_escape);
  for (std::size_t i = 0; i + 1 < moves.segments().size(); ++i) {
    moves.move_boundary(i, moves.segments()[i + 1].end);
  }
  return moves.take();
}

std::vector<Scheme> seize(const OperatorOrder& order, const Scheme& scheme,
                          const MayEscape& may_escape) {
  Moves moves(order, scheme, may_escape);
  for (std::size_t i = 0; i + 1 < moves.segments().size(); ++i) {
    const int boundary = moves.segments()[i].end;
    if (moves.has_compute(i) && !moves.has_compute(i + 1)) {
      moves.move_boundary(i, boundary + 1);
    } else if (!moves.has_compute(i) && moves.has_compute(i + 1)) {
      moves.move_boundary(i, boundary - 1);
    }
  }
  return moves.take();
}

std::vector<Scheme> compete(const OperatorOrder& order, const Scheme& scheme,
                            const MayEscape& may_escape) {
  Moves moves(order, scheme, may_escape);
  for (std::size_t i = 1; i + 1 < moves.segments().size(); ++i) {
    const Segment contested = moves.segments()[i];
    if (contested.size() != 1 || moves.has_compute(i) || !moves.has_compute(i - 1) ||
        !moves.has_compute(i + 1)) {
      continue;
    }
    const auto to_left = [&] { moves.move_boundary(i - 1, contested.end); };
    const auto to_right = [&] { moves.move_boundary(i, contested.begin); };
    if (moves.compute(i - 1) <= moves.compute(i + 1)) {
      to_left();
      to_right();
    } else {
      to_right();
      to_left();
    }
  }
  return moves.take();
}

}  // namespace stof::fusion
