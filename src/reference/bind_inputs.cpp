#include "reference/bind_inputs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/float16.hpp"
#include "stof/error.hpp"

namespace stof::reference {

namespace {

constexpr std::int64_t kMaxExactInteger = std::int64_t{1} << 53;  // as a double

std::string describe(const graph::Value& value) {
  return fmt::format("reference: {} \"{}\"",
                     value.role == graph::ValueRole::Weight ? "weight" : "input", value.name);
}

void check_names(const graph::Ir& ir, const Tensors& tensors) {
  for (const auto& [name, view] : tensors) {
    const bool is_known = std::ranges::any_of(ir.values, [&name = name](const auto& value) {
      return value->role != graph::ValueRole::Result && value->name == name;
    });
    if (!is_known) {
      throw GraphError(
          fmt::format("reference: graph \"{}\" has no input or weight \"{}\"", ir.name, name));
    }
  }
}

void check_type(const graph::Value& value, const TensorView& view) {
  if (view.location != Location::Host) {
    throw GraphError(describe(value) + " lies on a device");
  }
  if (view.dtype != value.dtype) {
    throw GraphError(fmt::format("{} is {}, the graph says {}", describe(value), name(view.dtype),
                                 name(value.dtype)));
  }
  if (static_cast<int>(view.shape.size()) != value.shape.rank()) {
    throw GraphError(fmt::format("{} has shape [{}], the graph says {}", describe(value),
                                 fmt::join(view.shape, ", "), value.shape.text()));
  }
  if (view.element_count() > 0 && view.data == nullptr) {
    throw GraphError(describe(value) + " has no data");
  }
}

// Extents that are one symbol give it its value.
void bind_symbols(const graph::Value& value, const TensorView& view, DimValues& dims) {
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    const Dim& dim = value.shape.dims()[axis];
    const auto symbols = dim.symbols();
    if (symbols.size() != 1) {
      continue;
    }
    const auto& [symbol, range] = *symbols.begin();
    if (!(dim == Dim::symbol(symbol, range.first, range.second))) {
      continue;
    }
    const auto [known, is_new] = dims.emplace(symbol, view.shape[axis]);
    if (!is_new && known->second != view.shape[axis]) {
      throw GraphError(fmt::format("{} has shape [{}], the graph says {} and {} is {}",
                                   describe(value), fmt::join(view.shape, ", "), value.shape.text(),
                                   symbol, known->second));
    }
  }
}

void check_sizes(const graph::Value& value, const TensorView& view, const DimValues& dims) {
  if (value.shape.sizes(dims) != view.shape) {
    throw GraphError(fmt::format("{} has shape [{}], the graph says {}", describe(value),
                                 fmt::join(view.shape, ", "), value.shape.text()));
  }
}

void check_exact(const graph::Value& value, const HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    std::int64_t element = 0;
    std::memcpy(&element, tensor.bytes().data() + i * size_bytes(DType::Int64), sizeof(element));
    if (element > kMaxExactInteger || element < -kMaxExactInteger) {
      throw GraphError(
          fmt::format("{} holds {} at position {}, over 2^53", describe(value), element, i));
    }
  }
}

bool is_readable_in_place(const TensorView& view) {
  return is_floating(view.dtype) && view.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(view.data) %
                 static_cast<std::uintptr_t>(size_bytes(view.dtype)) ==
             0;
}

Elements elements_of(const TensorView& view) {
  switch (view.dtype) {
    case DType::Float16:
      return static_cast<const base::Float16*>(view.data);
    case DType::BFloat16:
      return static_cast<const base::BFloat16*>(view.data);
    default:
      return static_cast<const float*>(view.data);
  }
}

Array array_of(const graph::Value& value, const TensorView& view) {
  if (is_readable_in_place(view)) {
    return {.dtype = view.dtype, .shape = view.shape, .elements = elements_of(view)};
  }
  const HostTensor tensor(view);
  if (tensor.dtype() == DType::Int64) {
    check_exact(value, tensor);
  }
  std::vector<double> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.at(static_cast<std::int64_t>(i));
  }
  return make_exact_array(view.dtype, view.shape, std::move(values));
}

}  // namespace

BoundInputs bind_inputs(const graph::Ir& ir, const Tensors& tensors, const Options& options) {
  check_names(ir, tensors);
  BoundInputs bound{.dims = options.dims};
  std::vector<std::pair<std::size_t, const TensorView*>> given;
  for (std::size_t id = 0; id < ir.values.size(); ++id) {
    const graph::Value& value = *ir.values[id];
    if (value.role == graph::ValueRole::Result) {
      continue;
    }
    const auto found = tensors.find(value.name);
    if (found == tensors.end()) {
      throw GraphError(describe(value) + " is missing");
    }
    check_type(value, found->second);
    bind_symbols(value, found->second, bound.dims);
    given.emplace_back(id, &found->second);
  }
  bound.values.resize(ir.values.size());
  for (const auto& [id, view] : given) {
    check_sizes(*ir.values[id], *view, bound.dims);
    bound.values[id] = array_of(*ir.values[id], *view);
  }
  return bound;
}

}  // namespace stof::reference
