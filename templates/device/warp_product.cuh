// A tile of a product with few rows, by mma.sync (sm_80 and newer). The warps of a block take turns
// at 64 of k, each with a ring of stages of its own in shared memory: nothing but the memory holds
// one up before their sums meet.
#pragma once

#include "device/tile_copy.cuh"

namespace stof {

// TileM rows of x by TileN columns of each of so many weights of one shape, which have N columns
// and lie as [N, K] (IsTurned) or as [K, N].
template <typename T, int TileM, int TileN, int Weights, int N, int K, bool IsTurned, int Stages,
          int Warps>
struct WarpProduct {
  static constexpr int kStep = 64;       // of k
  static constexpr int kRowBytes = 128;  // of a step
  static constexpr int kColumns = Weights * TileN;
  static constexpr int kBytesX = TileM * kRowBytes;
  static constexpr int kBytesW = TileN * kRowBytes;  // of one weight
  static constexpr int kStageBytes = kBytesX + Weights * kBytesW;
  static constexpr int kBlocksM = TileM / 16;
  static constexpr int kPairs = kColumns / 16;  // of blocks of 8 columns
  static constexpr int kPitch = kColumns + 8;   // of the sums that a warp leaves where its ring was
  static_assert(4 * TileM * kPitch <= Stages * kStageBytes);

  using Sums = float[kBlocksM][2 * kPairs][4];

  // Of the whole tile; after `begin` of a lane's chunks of the next step of its warp.
  struct Source {
    const T* x;
    long long x_stride;
    const T* w[Weights];
    long long w_stride[Weights];
    int rows;     // of x, from the tile's first on
    int columns;  // of a weight, from the tile's first on
    int k;        // of the next step
    int end_k;

    __device__ __forceinline__ void begin(int warp, int lane) {
      constexpr int kChunksW = IsTurned ? kStep / 8 : TileN / 8;
      k += warp * kStep;
      x += k + lane / 8 * x_stride + lane % 8 * 8;
#pragma unroll
      for (int i = 0; i < Weights; ++i) {
        w[i] +=
            (IsTurned ? k : k * w_stride[i]) + lane / kChunksW * w_stride[i] + lane % kChunksW * 8;
      }
    }
    // `step` counts the warp's steps from the next one on.
    __device__ __forceinline__ void copy_x(unsigned stage, int step, int lane) const {
      const int first = k + step * Warps * kStep;
      if (first < end_k) {
        copy_tile<TileM, kStep, 32, K % kStep == 0>(stage, x + step * Warps * kStep, x_stride, rows,
                                                    K - first, lane);
      }
    }
    __device__ __forceinline__ void copy_w(unsigned stage, int step, int lane) const {
      const int first = k + step * Warps * kStep;
      if (first < end_k) {
#pragma unroll
        for (int i = 0; i < Weights; ++i) {
          const unsigned tile = stage + kBytesX + i * kBytesW;
          if constexpr (IsTurned) {
            copy_tile<TileN, kStep, 32, K % kStep == 0>(tile, w[i] + step * Warps * kStep,
                                                        w_stride[i], columns, K - first, lane);
          } else {
            copy_tile<kStep, TileN, 32, N % TileN == 0>(tile,
                                                        w[i] + step * Warps * kStep * w_stride[i],
                                                        w_stride[i], K - first, columns, lane);
          }
        }
      }
    }
    __device__ __forceinline__ void advance() {
      k += Warps * kStep;
      x += Warps * kStep;
#pragma unroll
      for (int i = 0; i < Weights; ++i) {
        w[i] += Warps * kStep * (IsTurned ? 1 : w_stride[i]);
      }
    }
  };

  // Adds this warp's part of k. The first weights are asked for before wait_for_x, which all
  // threads call.
  template <typename Wait>
  __device__ __forceinline__ static void add_products(Sums& sums, Source source, char* shared,
                                                      const Wait& wait_for_x) {
    const int lane = int(threadIdx.x) % 32;
    const int warp = int(threadIdx.x) / 32;
    const unsigned ring = shared_address(shared) + warp * Stages * kStageBytes;
    source.begin(warp, lane);
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) {
      source.copy_w(ring + i * kStageBytes, i, lane);
    }
    wait_for_x();
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) {
      source.copy_x(ring + i * kStageBytes, i, lane);
      cp_async_commit();
    }
    unsigned read = ring;
    unsigned write = ring + (Stages - 1) * kStageBytes;
    const auto next = [ring](unsigned stage) {
      return stage == ring + (Stages - 1) * kStageBytes ? ring : stage + kStageBytes;
    };
#pragma unroll 1
    while (source.k < source.end_k) {
      cp_async_wait<Stages - 2>();
      __syncwarp();
      source.copy_w(write, Stages - 1, lane);
      source.copy_x(write, Stages - 1, lane);
      cp_async_commit();
      multiply(sums, read, lane);
      source.advance();
      read = next(read);
      write = next(write);
    }
    cp_async_wait<0>();
    __syncwarp();
  }

  // Leaves the sums where the warp's ring was, for `total` behind a barrier of the block.
  __device__ __forceinline__ static void leave(const Sums& sums, char* shared) {
    const int lane = int(threadIdx.x) % 32;
    float* first = part(shared, int(threadIdx.x) / 32, lane / 4, lane % 4 * 2);
#pragma unroll
    for (int i = 0; i < kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kPairs; ++j) {
        float* at = first + 16 * i * kPitch + 8 * j;
        *reinterpret_cast<float2*>(at) = make_float2(sums[i][j][0], sums[i][j][1]);
        *reinterpret_cast<float2*>(at + 8 * kPitch) = make_float2(sums[i][j][2], sums[i][j][3]);
      }
    }
  }

  // Four neighbours of the tile: the sums of all warps, in their order.
  __device__ __forceinline__ static float4 total(char* shared, int row, int column) {
    float4 sum = *reinterpret_cast<const float4*>(part(shared, 0, row, column));
#pragma unroll
    for (int warp = 1; warp < Warps; ++warp) {
      const float4 addend = *reinterpret_cast<const float4*>(part(shared, warp, row, column));
      sum = make_float4(sum.x + addend.x, sum.y + addend.y, sum.z + addend.z, sum.w + addend.w);
    }
    return sum;
  }

  // Where a warp left its sum.
  __device__ __forceinline__ static float* part(char* shared, int warp, int row, int column) {
    return reinterpret_cast<float*>(shared + warp * Stages * kStageBytes) + row * kPitch + column;
  }

 private:
  __device__ __forceinline__ static void multiply(Sums& sums, unsigned stage, int lane) {
#pragma unroll
    for (int depth = 0; depth < kStep / 16; ++depth) {
      unsigned x[kBlocksM][4];
      unsigned w[kPairs][4];
#pragma unroll
      for (int i = 0; i < kBlocksM; ++i) {
        ldmatrix_x4(x[i], stage + 16 * i * kRowBytes +
                              swizzled_offset<kRowBytes>(lane % 16, 2 * depth + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        if constexpr (IsTurned) {
          const int chunk = 2 * depth + lane / 8 % 2;
          ldmatrix_x4(w[j], stage + kBytesX + 16 * j * kRowBytes +
                                swizzled_offset<kRowBytes>(lane / 16 * 8 + lane % 8, chunk));
        } else {
          constexpr int kPairsOfOne = TileN / 16;
          const int chunk = j % kPairsOfOne * 2 + lane / 16;
          ldmatrix_x4_trans(w[j], stage + kBytesX + j / kPairsOfOne * kBytesW +
                                      swizzled_offset<2 * TileN>(16 * depth + lane % 16, chunk));
        }
      }
#pragma unroll
      for (int i = 0; i < kBlocksM; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * kPairs; ++j) {
          mma_m16n8k16<T>(sums[i][j], x[i], w[j / 2][j % 2 * 2], w[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }
};

}  // namespace stof
