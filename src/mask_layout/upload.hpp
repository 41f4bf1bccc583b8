#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device_array.hpp"
#include "expr/program.hpp"
#include "mask/node.hpp"
#include "mask_layout/device_mask.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

// Brings the nodes of a mask to the GPU. Data and expressions that occur twice are brought once.
class Uploader {
 public:
  explicit Uploader(const CaptureTensors& captures) : captures_(captures) {}

  void add(const Mask& mask);

  // Uninitialised memory that lives with what take_memory returns.
  std::byte* allocate(std::size_t size_bytes);
  MaskView finish();
  // Where captures that are on the GPU are among those of the mask.
  std::map<std::string, std::vector<std::size_t>> take_device_captures() {
    return std::move(device_captures_);
  }
  std::vector<cuda::DeviceArray<std::byte>> take_memory() { return std::move(memory_); }

 private:
  template <typename T>
  const T* copy(std::span<const T> values);
  // Operations on truth values are parts of their own around what draws.
  void add(const Expr& predicate, int depth);
  Part leaf(const mask::Node& node);
  Part expression(const Expr& predicate);
  TableView table(const Table& table);
  CaptureView capture(const Capture& capture);
  std::int32_t drawn_part() const;

  const CaptureTensors& captures_;
  std::vector<Part> parts_;
  std::vector<Step> steps_;
  std::vector<TableView> tables_;
  std::vector<CaptureView> capture_views_;
  std::map<std::string, std::vector<std::size_t>> device_captures_;
  std::map<const mask::Node*, Part> leaves_;
  std::map<const expr::TableData*, TableView> known_tables_;
  std::vector<cuda::DeviceArray<std::byte>> memory_;
  int slots_ = 0;
  int row_slots_ = 0;
  bool goes_by_rows_ = true;
};

}  // namespace stof::mask_layout
