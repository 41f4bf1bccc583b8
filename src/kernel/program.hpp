#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mask/extent.hpp"
#include "mask/input_form.hpp"
#include "mask/rows.hpp"
#include "stof/dtype.hpp"
#include "stof/mask.hpp"

// A graph as the GPU runs it: plain data, made by lowering, bound to memory by `execute`.
namespace stof::kernel {

// What a pointer argument points into. Indices count the tensors of the plan in its order.
enum class MemorySpace : std::uint8_t {
  Input,
  Output,
  Weight,
  Arena,     // Program::arena: a value that lives from one launch to another
  Constant,  // Program::constants: arrays that lowering made, such as the lists of a mask
};

struct Location {
  MemorySpace space = MemorySpace::Arena;
  int index = 0;
  std::int64_t offset_bytes = 0;

  friend bool operator==(const Location&, const Location&) = default;
};

// An array of a layout of Program::layouts, by the name that templates have for it.
enum class LayoutArrayKind : std::uint8_t {
  Order,  // this and the next three are of tiles of tile_q queries
  RowPtr,
  TileCol,
  TileBitmap,
  Bitmaps,
  KeyRowPtr,
  KeyCol,
  RowOrder,
  RowFirst,  // this and the next one are of runs
  RowEnd,
};

struct LayoutArray {
  int layout = 0;
  LayoutArrayKind kind = LayoutArrayKind::Order;
  std::int64_t tile_q = 0;

  friend bool operator==(const LayoutArray&, const LayoutArray&) = default;
};

// A tensor as TMA copies it tile by tile. Axes run from the outermost; the innermost is contiguous.
struct TensorMap {
  Location data;
  DType dtype = DType::Float16;
  std::vector<std::int64_t> extents;  // in elements
  std::vector<std::int64_t> strides;  // in elements
  std::vector<std::int64_t> box;      // extents of a tile, whose innermost has 128 bytes

  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

// An argument of a kernel by its C type: a pointer (or null), bool, int, long long, float, and the
// 128 bytes of a CUtensorMap.
using LaunchArgument = std::variant<std::nullptr_t, Location, LayoutArray, bool, std::int32_t,
                                    std::int64_t, float, TensorMap>;

// One launch of a kernel, complete but for the addresses of memory.
struct LaunchRecord {
  int kernel = 0;                              // index into Program::kernels
  std::array<std::int64_t, 3> grid{1, 1, 1};   // in blocks
  std::array<std::int64_t, 3> block{1, 1, 1};  // in threads
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  std::int64_t shared_bytes = 0;  // dynamic
  bool is_programmatic = false;   // the kernel waits for the one ahead of it by itself
  std::vector<LaunchArgument> arguments;
  std::string label;  // what it computes, for people: "linear_3, gelu_4"
};

// A piece of device memory that one launch writes and later ones read. Pieces that never live
// together may share addresses.
struct ArenaBuffer {
  std::int64_t size_bytes = 0;
  int first_launch = 0;  // that touches it
  int last_launch = 0;
  // Zero before the first launch of all, and left zero by whoever uses it: shares with no one.
  bool must_be_zero = false;
};

// An array that does not depend on inputs or weights; equal ones may be the same object.
using ConstantArray = std::shared_ptr<const std::vector<std::byte>>;

// Data of a mask that is another one on each run; packed.
struct MaskData {
  mask::InputForm form = mask::InputForm::Dense;
  Location data;
  Location row_ptr;        // of Csr
  std::int64_t count = 0;  // entries of the data
  std::int64_t batch = 1;  // of Dense: 1 where shared
  std::int64_t heads = 1;
};

// A tensor that the expressions of a mask read; strides in elements.
struct MaskCapture {
  Location data;
  DType dtype = DType::Float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

// The layout of a mask that is known at run time only. It is built on each run, ahead of the first
// launch that reads it: of the pairs that `mask` and all inputs let see.
struct LayoutBuild {
  std::string name;  // of the mask, for people
  Mask mask;
  mask::Extent extent;
  std::vector<MaskData> inputs;
  std::map<std::string, MaskCapture> captures;  // by the names in `mask`
  std::vector<std::int64_t> tile_q;             // of the tiles that are listed
  bool has_key_rows = false;
  // Where each query sees a run of keys, and its ends are listed: those of its document along this
  // band, which is what `mask` lets see.
  std::optional<mask::Band> runs;
  std::int64_t max_part_tiles = 0;  // 0: no bound
  std::int64_t max_keys = 0;        // that there can be
  int first_launch = 0;             // that reads it
  int last_launch = 0;
};

struct Program {
  std::vector<std::string> kernels;  // entry names, each with a cubin of its own
  std::vector<LaunchRecord> launches;
  std::vector<ArenaBuffer> arena;
  std::vector<LayoutBuild> layouts;  // in order of first_launch
  std::vector<ConstantArray> constants;
};

}  // namespace stof::kernel
