// Attention of windows of 16 query rows, one a warp, over lists of the keys that any row of a
// window sees, in mma.m16n8k16, with keys and values that a CTA has staged in shared memory.
//
// The lists are those of mask/window_columns.hpp: octets of columns, which are the place of a key
// in the stage and the rows that see it. Their keys lie in different banks as far as can be.
#pragma once

#include "device/async_copy.cuh"
#include "device/attention_softmax.cuh"
#include "device/mma.cuh"

namespace stof {

// The same value, which the compiler then keeps in a register instead of finding it anew.
__device__ __forceinline__ unsigned kept(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Rows of `Columns` 16-bit elements in panels of 128 bytes a row, `Rows` of them each. Chunks of 16
// bytes are exchanged with the row number: that of chunk c of a row is at place ^ 16 c in a panel.
// Warps read four chunks of eight rows at a time; `Padded`, rows are zero up to there.
template <int Columns, int Rows, bool Padded>
struct StagedRows {
  static constexpr int kChunks = Columns / 8;
  static constexpr int kLoads = (kChunks + 3) / 4;  // of four chunks
  static constexpr int kCopied = Padded ? 4 * kLoads : kChunks;
  static constexpr int kPanelBytes = 128 * Rows;
  static constexpr int kPanels = (Columns + 63) / 64, kBytes = kPanels * kPanelBytes;

  __device__ __forceinline__ static unsigned offset(int row, int chunk) {
    return (row * 128 + row % 8 * 16 ^ chunk % 8 * 16) + chunk / 8 * kPanelBytes;
  }

  // Starts to copy rows from `first` on by a CTA of `Threads` threads, eight rows or a multiple at
  // a time; some threads may be left over. In place of rows from `end` on the one before it comes
  // again. Few registers: accumulators take them all.
  template <int Threads, typename T>
  __device__ __forceinline__ static void copy_async(unsigned shared, const T* rows, unsigned pitch,
                                                    int first, int end) {
    constexpr int kRowsAtOnce = Threads / kCopied / 8 * 8;
    static_assert(kRowsAtOnce > 0);
    const int lane_row = threadIdx.x / kCopied, chunk = threadIdx.x % kCopied;
    if (Threads > kRowsAtOnce * kCopied && lane_row >= kRowsAtOnce)
      return;
    const auto* bytes = reinterpret_cast<const unsigned char*>(rows) + min(chunk, kChunks - 1) * 16;
    shared += offset(lane_row, chunk);
#pragma unroll
    for (int row = 0; row < Rows; row += kRowsAtOnce) {
      if (row + kRowsAtOnce <= Rows || lane_row + row < Rows) {
        cp_async_16(shared + row * 128, source(bytes, pitch, first + lane_row + row, end),
                    kCopied == kChunks || chunk < kChunks ? 16 : 0);
      }
    }
  }

 private:
  __device__ __forceinline__ static const unsigned char* source(const unsigned char* bytes,
                                                                unsigned pitch, int row, int end) {
    return bytes +
           static_cast<unsigned long long>(static_cast<unsigned>(min(row, end - 1))) * pitch;
  }
};

// The octets of a window, read in order: a group of eight of them.
struct ColumnStream {
  static constexpr unsigned kOctets = 8;
  unsigned seen, places;

  // At any octet of a list.
  __device__ __forceinline__ void start(const unsigned* words, unsigned octet, int lane) {
    enter(words, octet, lane);
    seen >>= octet % kOctets * 4;
  }
  // Enters the group that this octet is in, and asks for the next one.
  __device__ __forceinline__ void enter(const unsigned* words, unsigned octet, int lane) {
    const unsigned* group = words + octet / kOctets * 64 + lane;
    seen = __ldg(group);
    places = __ldg(group + 32);
    asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(group + 64)));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(group + 96)));
  }
  // Whether score e of the octet counts; the lowest bits are those of the present octet.
  __device__ __forceinline__ bool is_seen(int e) const { return (seen & 1u << e) != 0; }
  __device__ __forceinline__ void leave_octet() { seen >>= 4; }

  // The lane to read from counts modulo 32.
  __device__ __forceinline__ unsigned place(unsigned octet, int column) const {
    const unsigned two = __shfl_sync(0xffffffffu, places, octet * 4 + column / 2);
    return two >> column % 2 * 16 & 0xffffu;
  }
};

// Where a lane reads chunks of the keys or values of an octet, as ldmatrix wants it: those of
// column lane % 8, and of four chunks lane / 8.
struct OctetAddress {
  unsigned first;

  __device__ __forceinline__ OctetAddress(unsigned stage, unsigned place, int lane)
      : first(stage + (place ^ lane / 8 * 16)) {}

  // Chunks 4 i to 4 i + 3. Stages are aligned to 128 bytes.
  template <typename Rows>
  __device__ __forceinline__ unsigned chunks(int i, int behind) const {
    return (first ^ i % 2 * 64) + i / 2 * Rows::kPanelBytes + behind;
  }
};

// The A fragments of the 16 rows of a window.
template <int Columns, typename KeyRows>
struct WindowQueries {
  unsigned fragments[2 * KeyRows::kLoads][4];

  template <typename T>
  __device__ __forceinline__ void load(const T* rows, long long stride, int valid, int lane) {
#pragma unroll
    for (int i = 0; i < 8 * KeyRows::kLoads; ++i) {
      const int row = lane / 4 + i % 2 * 8, chunk = i / 2;
      const auto* words = reinterpret_cast<const unsigned*>(rows + row * stride);
      fragments[i / 4][i % 4] =
          row < valid && chunk < Columns / 8 ? __ldg(words + chunk * 4 + lane % 4) : 0;
    }
  }

  // The scores of an octet of keys.
  template <typename T>
  __device__ __forceinline__ void multiply(float (&scores)[4], const OctetAddress& keys) const {
#pragma unroll
    for (int i = 0; i < KeyRows::kLoads; ++i) {
      unsigned b[4];
      ldmatrix_x4(b, keys.chunks<KeyRows>(i, 0));
      mma_m16n8k16<T>(scores, fragments[2 * i], b[0], b[1]);
      mma_m16n8k16<T>(scores, fragments[2 * i + 1], b[2], b[3]);
    }
  }
};

// Sums of values for a window of rows, relative to exp2(reference), and those of the probabilities,
// of this lane's columns. Sums and scores are in the order of an accumulator.
template <int Columns, typename ValueRows>
struct WindowSums {
  static constexpr int kTiles = Columns / 8;
  // The reference follows where a probability would pass 2^8, see SoftmaxRows.
  static constexpr float kSlack = 256.0f, kNoReference = -3e38f;

  float reference[2], sum[2];
  float o[kTiles][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      reference[i] = kNoReference;
      sum[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < 4 * kTiles; ++i)
      o[i / 4][i % 4] = 0;
  }

  // Turns the scores of an octet into probabilities.
  __device__ __forceinline__ void step(float (&s)[4], const ColumnStream& columns,
                                       float scale_log2) {
    float p[4], sums[2];
    while (true) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[e] = exp2_approx(columns.is_seen(e) ? fmaf(s[e], scale_log2, -reference[e / 2])
                                              : minus_infinity());
      }
      sums[0] = p[0] + p[1];
      sums[1] = p[2] + p[3];
      if (!__any_sync(0xffffffffu, fmaxf(sums[0], sums[1]) > 2 * kSlack))
        break;
      raise(s, columns, scale_log2);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
      s[e] = p[e];
    sum[0] += sums[0];
    sum[1] += sums[1];
  }

  // Adds the values of an octet, which lie `ValuesBehind` bytes behind the keys.
  template <typename T, int ValuesBehind>
  __device__ __forceinline__ void add_values(const float (&p)[4], const OctetAddress& octet) {
    const unsigned a[2] = {pack2<T>(p[0], p[1]), pack2<T>(p[2], p[3])};
#pragma unroll
    for (int i = 0; i < ValueRows::kLoads; ++i) {
      unsigned b[4];
      ldmatrix_x4_trans(b, octet.chunks<ValueRows>(i, ValuesBehind));
#pragma unroll
      for (int tile = 4 * i; tile < 4 * i + 4 && tile < kTiles; ++tile)
        mma_m16n8k8<T>(o[tile], a, b[tile % 4]);
    }
  }

  __device__ __forceinline__ void divide() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sum[half] = quad_sum(sum[half]);
      scale(half, sum[half] > 0 ? __fdividef(1.0f, sum[half]) : 0.0f);
    }
  }

  template <typename T>
  __device__ __forceinline__ void store(T* rows, long long stride, int valid, int lane) const {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int row = lane / 4 + i % 2 * 8, tile = i / 2;
      if (row < valid) {
        reinterpret_cast<unsigned*>(rows + row * stride)[4 * tile + lane % 4] =
            pack2<T>(o[tile][i % 2 * 2], o[tile][i % 2 * 2 + 1]);
      }
    }
  }

 private:
  __device__ __forceinline__ void scale(int half, float factor) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i)
      o[i / 2][2 * half + i % 2] *= factor;
  }

  __device__ __forceinline__ void raise(const float (&s)[4], const ColumnStream& columns,
                                        float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float best = reference[half];
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        if (columns.is_seen(e))
          best = fmaxf(best, s[e] * scale_log2);
      }
      best = quad_max(best);
      const float factor = exp2_approx(reference[half] - best);
      reference[half] = best;
      sum[half] *= factor;
      scale(half, factor);
    }
  }
};

}  // namespace stof
