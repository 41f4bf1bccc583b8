// Rotary embeddings: pairs of channels of a head, turned by angles that grow with the position.
#pragma once

namespace stof {

// In half revolutions, from -1 to 1, for a pair that moves on by step / 2^64 revolutions from one
// position to the next: whole ones go by themselves, and what is left is exact at any position.
__device__ __forceinline__ float half_turns(int position, unsigned long long step) {
  const unsigned long long turns =
      static_cast<unsigned long long>(static_cast<long long>(position)) * step;
  return static_cast<float>(static_cast<int>(turns >> 32)) * 0x1p-31f;
}

// Cosine and sine, exact enough for results of 16 bits.
struct Turn {
  float cosine, sine;

  __device__ __forceinline__ Turn(int position, unsigned long long step) {
    __sincosf(half_turns(position, step) * 3.14159265f, &sine, &cosine);
  }
  __device__ __forceinline__ void apply(float& first, float& second) const {
    const float turned = first * cosine - second * sine;
    second = second * cosine + first * sine;
    first = turned;
  }
};

// Which channels of a head are a pair: (2 i, 2 i + 1), or (i, i + Pairs). Those from 2 * Pairs on
// are none.
template <int HeadDim, int Pairs, bool IsInterleaved>
struct RotaryHead {
  static constexpr int kHeadDim = HeadDim;
  static constexpr int kTurned = 2 * Pairs;  // channels

  // Turns the first `heads` heads of two rows, by their positions; a thread has Count sums of them
  // as mma leaves them. `steps` are those of all pairs. Pairs is a multiple of 8.
  template <int Count>
  __device__ __forceinline__ static void turn_rows(float (&sums)[Count], int heads,
                                                   const int (&positions)[2],
                                                   const unsigned long long* steps, int lane) {
    constexpr int kHeads = 2 * Count / HeadDim;
#pragma unroll
    for (int i = 0; i < Pairs / 4; ++i) {
      const int pair = IsInterleaved ? 4 * i + lane % 4 : i / 2 * 8 + lane % 4 * 2 + i % 2;
      const unsigned long long step = steps[pair];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const Turn turn(positions[row], step);
        const int first = (IsInterleaved ? 4 * i : i / 2 * 4 + i % 2) + 2 * row;
        const int second = first + (IsInterleaved ? 1 : Pairs / 2);
#pragma unroll
        for (int head = 0; head < kHeads; ++head) {
          if (head < heads) {
            turn.apply(sums[head * HeadDim / 2 + first], sums[head * HeadDim / 2 + second]);
          }
        }
      }
    }
  }

  // The channel from which four neighbours are turned together with those from `channel` on.
  __device__ __forceinline__ static int partner(int channel) {
    return IsInterleaved ? channel : channel < Pairs ? channel + Pairs : channel - Pairs;
  }

  // Turns the four from `channel` on, a multiple of 4 below 2 * Pairs, with their partners.
  __device__ __forceinline__ static void turn_four(float (&four)[4], float (&partners)[4],
                                                   int channel, int position,
                                                   const unsigned long long* steps) {
    if constexpr (IsInterleaved) {
      Turn(position, steps[channel / 2]).apply(four[0], four[1]);
      Turn(position, steps[channel / 2 + 1]).apply(four[2], four[3]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Turn turn(position, steps[channel % Pairs + i]);
        if (channel < Pairs) {
          turn.apply(four[i], partners[i]);
        } else {
          turn.apply(partners[i], four[i]);
        }
      }
    }
  }
};

}  // namespace stof
