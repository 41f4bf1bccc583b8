#include "cuda/tensor_map.hpp"

#include "base/check.hpp"
#include "cuda/driver.hpp"

namespace stof::cuda {

CUtensorMap encode_tensor_map(const TensorMapSpec& spec) {
  const std::size_t rank = spec.extents.size();
  STOF_CHECK(rank >= 1 && rank <= 5) << "tensor map of rank " << rank;
  STOF_CHECK(spec.box.size() == rank && spec.strides_bytes.size() + 1 == rank)
      << "tensor map of rank " << rank << " with " << spec.box.size() << " box extents and "
      << spec.strides_bytes.size() << " strides";
  const std::vector<std::uint32_t> element_strides(rank, 1);
  CUtensorMap map = {};
  check(driver().tensor_map_encode_tiled(&map, spec.dtype, static_cast<cuuint32_t>(rank), spec.data,
                                         spec.extents.data(), spec.strides_bytes.data(),
                                         spec.box.data(), element_strides.data(),
                                         CU_TENSOR_MAP_INTERLEAVE_NONE, spec.swizzle,
                                         spec.l2_promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace stof::cuda
