#include "validate/hostile_tensors.hpp"

#include <cmath>
#include <random>

#include "graph/op_info.hpp"

namespace stof::validate {

using graph::OpKind;

namespace {

constexpr float kOutlier = 100;
constexpr int kOutlierEvery = 61;
constexpr float kMean = 200;
constexpr float kDeviationOfMean = 0.25F;
constexpr float kSmall = 1.0F / 512;

// What reads a value, views between aside.
struct Reader {
  const graph::Operator* op = nullptr;
  std::size_t place = 0;
  std::int64_t contracted = 0;  // of a second operand of a product: the terms of each sum
};

Reader reader_of(const graph::Ir& ir, int id) {
  for (const graph::Operator& op : ir.operators) {
    for (std::size_t place = 0; place < op.inputs.size(); ++place) {
      if (op.inputs[place] != id) {
        continue;
      }
      if (graph::op_info(op.kind).op_class == graph::OpClass::View) {
        return reader_of(ir, op.outputs[0]);
      }
      Reader reader{.op = &op, .place = place};
      if (op.kind == OpKind::MatMul && place == 1) {
        const bool is_transposed = graph::attribute<bool>(op, "transpose_b");
        reader.contracted = graph::value_at(ir, id).shape[is_transposed ? -1 : -2].value();
      }
      return reader;
    }
  }
  return {};
}

// Ids of tables, positions, lengths, or numbers below 100.
std::int64_t end_of_integers(const graph::Ir& ir, const Reader& reader) {
  if (reader.op != nullptr && reader.op->kind == OpKind::Embedding) {
    return graph::value_at(ir, reader.op->inputs[0]).shape[0].value();
  }
  if (reader.op != nullptr && reader.op->kind == OpKind::Attention) {
    return graph::value_at(ir, reader.op->inputs[1]).shape[2].value() + 1;
  }
  return 100;
}

class Filler {
 public:
  Filler(InputKind kind, std::uint64_t seed) : kind_(kind), random_(seed) {}

  float next(bool is_matrix) {
    const float value = normal_(random_);
    ++count_;
    switch (kind_) {
      case InputKind::Outliers:
        return is_matrix && count_ % kOutlierEvery == 0 ? kOutlier * value : value;
      case InputKind::LargeMean:
        return is_matrix ? kMean + kDeviationOfMean * value : value;
      case InputKind::Small:
        return kSmall * value;
      case InputKind::Zeros:
        return is_matrix ? 0 : value;
      default:
        return value;
    }
  }

 private:
  InputKind kind_;
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  int count_ = 0;
};

HostTensor floats(const graph::Value& value, const Reader& reader, InputKind kind,
                  std::uint64_t seed) {
  HostTensor tensor(value.dtype, value.shape.sizes());
  const bool is_operand = reader.contracted > 0;
  const float scale = is_operand ? 1 / std::sqrt(static_cast<float>(reader.contracted)) : 1.0F;
  Filler filler(is_operand ? InputKind::Normal : kind, seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, static_cast<double>(scale * filler.next(value.shape.rank() >= 2)));
  }
  return tensor;
}

HostTensor integers(const graph::Ir& ir, const graph::Value& value, const Reader& reader) {
  HostTensor tensor(value.dtype, value.shape.sizes());
  const std::int64_t end = value.dtype == DType::Bool ? 2 : end_of_integers(ir, reader);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, static_cast<double>((i * 7919 + i / 13 + end - 1) % end));
  }
  return tensor;
}

}  // namespace

std::string_view name(InputKind kind) {
  constexpr std::array<std::string_view, kInputKinds.size()> kNames = {
      "normal inputs", "outliers", "a large mean", "small inputs", "zeros"};
  return kNames.at(static_cast<std::size_t>(kind));
}

HostTensors hostile_tensors(const graph::Ir& ir, InputKind kind) {
  HostTensors tensors;
  for (std::size_t id = 0; id < ir.values.size(); ++id) {
    const graph::Value& value = *ir.values[id];
    if (value.producer >= 0) {
      continue;
    }
    const Reader reader = reader_of(ir, static_cast<int>(id));
    tensors.emplace(value.name, is_floating(value.dtype) ? floats(value, reader, kind, 1000 + id)
                                                         : integers(ir, value, reader));
  }
  return tensors;
}

}  // namespace stof::validate
