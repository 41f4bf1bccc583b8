// Which tile of a matrix a CTA works on.
#pragma once

namespace stof {

// The first element of a tile of y.
struct TilePlace {
  int batch, row, column;
};

// Of tile number `tile`, in an order in which those that are worked on together share what they
// read: down groups of GroupM rows of tiles.
template <int TileM, int TileN, int GroupM>
__device__ __forceinline__ TilePlace tile_place(int tile, int tiles_m, int tiles_n) {
  const int batch = tile / (tiles_m * tiles_n);
  tile -= batch * tiles_m * tiles_n;
  const int group = tile / (GroupM * tiles_n);
  const int group_rows = min(GroupM, tiles_m - group * GroupM);
  const int place = tile - group * GroupM * tiles_n;
  return {batch, (group * GroupM + place % group_rows) * TileM, place / group_rows * TileN};
}

}  // namespace stof
