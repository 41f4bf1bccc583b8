#pragma once

// Score modifiers, as expressions and in double.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "expr/evaluate.hpp"
#include "stof/stof.hpp"

namespace stof::testing {

struct ScorePlace {
  std::int64_t batch, head, query, key;
};

struct ScoreModifier {
  std::string name = {};                      // "" for none
  std::vector<std::int64_t> bias_shape = {};  // of the tensor that it captures, if any
  std::function<Score(const std::function<Capture()>& bias)> expression = {};
  std::function<double(double score, const HostTensor* bias, const ScorePlace& at)> value = {};
};

inline ScoreModifier alibi(std::int64_t heads, std::int64_t past) {
  const auto slope = [heads](std::int64_t head) {
    return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
  };
  std::vector<double> slopes;
  for (std::int64_t head = 0; head < heads; ++head) {
    slopes.push_back(slope(head));
  }
  return {"alibi",
          {},
          [=](const auto&) {
            const Table table("slopes", slopes);
            return score() + table[head_index()] * (key_position() - query_position() - past);
          },
          [=](double score, const HostTensor*, const ScorePlace& at) {
            return score + slope(at.head) * static_cast<double>(at.key - at.query - past);
          }};
}

inline ScoreModifier soft_cap(double cap) {
  return {"soft cap " + std::to_string(cap),
          {},
          [=](const auto&) { return cap * tanh(score() / cap); },
          [=](double score, const HostTensor*, const ScorePlace&) {
            return cap * std::tanh(score / cap);
          }};
}

// A bias for each head and distance.
inline ScoreModifier relative_bias(std::int64_t heads, std::int64_t q_len, std::int64_t kv_len) {
  const std::int64_t distances = q_len + kv_len - 1;
  return {"relative bias",
          {heads, distances},
          [=](const auto& bias) {
            return score() + bias()(head_index(), key_position() - query_position() + (q_len - 1));
          },
          [=](double score, const HostTensor* bias, const ScorePlace& at) {
            return score + bias->at(at.head * distances + at.key - at.query + q_len - 1);
          }};
}

// As T5's: a bias for each bucket of distances, and head.
inline ScoreModifier bucket_bias(std::int64_t heads, std::int64_t most) {
  const auto bucket = [most](std::int64_t distance) {
    return std::clamp(distance + most, std::int64_t{0}, 2 * most) / 3;
  };
  std::vector<std::int64_t> buckets;
  for (std::int64_t distance = -most; distance <= most; ++distance) {
    buckets.push_back(bucket(distance));
  }
  return {"bucket bias",
          {2 * most / 3 + 1, heads},
          [=](const auto& bias) {
            const Table table("buckets", buckets);
            const Expr distance = key_position() - query_position();
            return score() + bias()(table[distance + most], head_index());
          },
          [=](double score, const HostTensor* bias, const ScorePlace& at) {
            return score + bias->at(bucket(at.key - at.query) * heads + at.head);
          }};
}

// A bias for each pair, of every head, and twice where that is asked for: of this query and of the
// first one.
inline ScoreModifier pair_bias(std::int64_t heads, std::int64_t q_len, std::int64_t kv_len,
                               bool is_read_twice = false) {
  return {is_read_twice ? "pair bias twice" : "pair bias",
          {heads, q_len, kv_len},
          [=](const auto& capture) {
            const Capture bias = capture();
            const Score once = score() + bias(head_index(), query_position(), key_position());
            return is_read_twice ? once - 0.5 * bias(head_index(), 0, key_position()) : once;
          },
          [=](double score, const HostTensor* bias, const ScorePlace& at) {
            const std::int64_t first = at.head * q_len * kv_len + at.key;
            const double once = score + bias->at(first + at.query * kv_len);
            return is_read_twice ? once - 0.5 * bias->at(first) : once;
          }};
}

// The sum of two biases for each pair.
inline ScoreModifier two_biases(std::int64_t heads, std::int64_t q_len, std::int64_t kv_len) {
  return {"two pair biases",
          {2, heads, q_len, kv_len},
          [=](const auto& capture) {
            const Capture bias = capture();
            const auto of = [&](int which) {
              return bias(which, head_index(), query_position(), key_position());
            };
            return score() + of(0) - 0.5 * of(1);
          },
          [=](double score, const HostTensor* bias, const ScorePlace& at) {
            const std::int64_t pair = (at.head * q_len + at.query) * kv_len + at.key;
            return score + bias->at(pair) - 0.5 * bias->at(heads * q_len * kv_len + pair);
          }};
}

// tanh of it all, twice where the head is even.
inline ScoreModifier capped_bias(std::int64_t heads, std::int64_t q_len, std::int64_t kv_len) {
  return {"capped pair bias",
          {heads, q_len, kv_len},
          [=](const auto& bias) {
            const Score all = score() + bias()(head_index(), query_position(), key_position());
            const Score once = 3.0 * tanh(all / 3.0);
            return select(head_index() % 2 == 0, 2.0 * tanh(once / 2.0), once);
          },
          [=](double score, const HostTensor* bias, const ScorePlace& at) {
            const double all = score + bias->at((at.head * q_len + at.query) * kv_len + at.key);
            const double once = 3 * std::tanh(all / 3);
            return at.head % 2 == 0 ? 2 * std::tanh(once / 2) : once;
          }};
}

// Less where a key is dropped at random, and more the farther ahead it is, but for one behind.
inline ScoreModifier dropped() {
  const Expr is_kept = keep(7, query_position(), key_position(), 0.9);
  return {"dropped",
          {},
          [=](const auto&) {
            const Expr ahead = key_position() - query_position();
            return select(is_kept, score(), score() - 4.0) + max(0.01 * ahead, 0.0);
          },
          [=](double score, const HostTensor*, const ScorePlace& at) {
            const expr::Bindings places = {{"q_pos", at.query}, {"k_pos", at.key}};
            const double ahead = static_cast<double>(at.key - at.query);
            return score - (expr::evaluate_truth(is_kept, places) ? 0.0 : 4.0) +
                   std::max(0.01 * ahead, 0.0);
          }};
}

// A bias for each key of a batch element, and none of every third head.
inline ScoreModifier key_bias(std::int64_t batch, std::int64_t kv_len) {
  return {"key bias",
          {batch, kv_len},
          [=](const auto& bias) {
            return select(head_index() % 3 == 2, score(),
                          score() + bias()(batch_index(), key_position()));
          },
          [=](double score, const HostTensor* bias, const ScorePlace& at) {
            return at.head % 3 == 2 ? score : score + bias->at(at.batch * kv_len + at.key);
          }};
}

}  // namespace stof::testing
