#include "fusion/cuda_type.hpp"

#include "base/check.hpp"

namespace stof::fusion {

const char* cuda_type(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return "half";
    case DType::BFloat16:
      return "nv_bfloat16";
    case DType::Float32:
      return "float";
    case DType::Int32:
      return "int";
    case DType::Int64:
      return "long long";
    case DType::UInt8:
      return "unsigned char";
    case DType::Bool:
      return "bool";
  }
  STOF_CHECK(false) << "dtype " << static_cast<int>(dtype);
  return "";
}

}  // namespace stof::fusion
