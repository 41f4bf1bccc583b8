#include "validate/tensor_contents.hpp"

namespace stof::validate {

execute::TensorContents contents_of(const graph::Ir& ir, const HostTensors& tensors) {
  execute::TensorContents contents;
  for (const auto& value : ir.values) {
    if (value->role != graph::ValueRole::Result) {
      const bool is_input = value->role == graph::ValueRole::Input;
      (is_input ? contents.inputs : contents.weights).emplace_back(tensors.at(value->name).bytes());
    }
  }
  for (const graph::Output& output : ir.outputs) {
    const graph::Value& value = graph::value_at(ir, output.value);
    contents.output_bytes.push_back(HostTensor(value.dtype, value.shape.sizes()).bytes().size());
  }
  return contents;
}

}  // namespace stof::validate
