#include "fusion/rotated_products.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fusion/best_scheme.hpp"
#include "fusion/match.hpp"
#include "fusion/placement.hpp"
#include "fusion/rewritten_graph.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using graph::Ir;
using graph::OpKind;

// A rotary of heads that are columns of a product.
struct TurnedHeads {
  int op = -1;
  std::int64_t first_column = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};

// A product, or its sum with a bias, whose first columns are turned.
struct RotatedProduct {
  int value = -1;
  std::vector<TurnedHeads> parts;  // side by side
  std::int64_t heads = 0;          // of all of them
};

// What makes the angles, but for positions that are given.
auto angles_of(const graph::Operator& rotary) {
  return std::tuple(graph::attribute<double>(rotary, "theta"),
                    graph::attribute<std::string>(rotary, "style"),
                    graph::attribute<std::int64_t>(rotary, "rotary_dim"),
                    graph::attribute<std::int64_t>(rotary, "position"));
}

class RotaryFinder {
 public:
  explicit RotaryFinder(const Ir& ir) : ir_(ir), readers_(ir), placement_(ir) {}

  // In the order of the products.
  std::vector<RotatedProduct> products() const {
    std::map<int, RotatedProduct> by_value;
    for (std::size_t op = 0; op < ir_.operators.size(); ++op) {
      if (ir_.operators[op].kind == OpKind::Rotary) {
        add(static_cast<int>(op), by_value);
      }
    }
    std::vector<RotatedProduct> products;
    for (auto& [value, product] : by_value) {
      if (lie_side_by_side(product) && are_alike(product) && are_read_apart(product)) {
        products.push_back(std::move(product));
      }
    }
    return products;
  }

 private:
  const graph::Operator& at(int op) const { return ir_.operators[static_cast<std::size_t>(op)]; }

  bool is_product(int value) const {
    const int producer = graph::value_at(ir_, value).producer;
    return producer >= 0 && at(producer).kind == OpKind::MatMul;
  }

  bool is_rotatable(int value) const {
    const int producer = graph::value_at(ir_, value).producer;
    if (producer < 0 || at(producer).kind != OpKind::Add) {
      return is_product(value);
    }
    const int a = at(producer).inputs[0];
    const int b = at(producer).inputs[1];
    const auto is_bias = [&](int other) { return graph::value_at(ir_, other).shape.rank() == 1; };
    return (is_product(a) && is_bias(b)) || (is_product(b) && is_bias(a));
  }

  // Where its x is heads [batch, heads, seq, head_dim] of a value [batch, seq, columns].
  void add(int op, std::map<int, RotatedProduct>& by_value) const {
    const std::optional<View> x = placement_.view(at(op).inputs[0]);
    if (!x || x->root >= static_cast<int>(ir_.values.size()) || !is_rotatable(x->root)) {
      return;
    }
    std::vector<std::int64_t> extents = placement_.extents(x->root);
    if (extents.size() == 2) {
      extents.insert(extents.begin(), 1);
    }
    const std::int64_t columns = extents.back();
    const std::vector<std::int64_t>& heads = x->extents;
    const std::vector<std::int64_t> strides = {heads[2] * columns, heads[3], columns, 1};
    bool fits = extents.size() == 3 && heads[0] == extents[0] && heads[2] == extents[1] &&
                x->offset + heads[1] * heads[3] <= columns;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      fits = fits && (heads[axis] == 1 || x->strides[axis] == strides[axis]);
    }
    if (fits) {
      RotatedProduct& product = by_value[x->root];
      product.value = x->root;
      product.heads += heads[1];
      product.parts.push_back(
          {.op = op, .first_column = x->offset, .heads = heads[1], .head_dim = heads[3]});
    }
  }

  static bool lie_side_by_side(RotatedProduct& product) {
    std::sort(product.parts.begin(), product.parts.end(),
              [](const auto& a, const auto& b) { return a.first_column < b.first_column; });
    std::int64_t next = 0;
    return std::all_of(product.parts.begin(), product.parts.end(), [&](const TurnedHeads& part) {
      const bool follows = part.first_column == next;
      next += part.heads * part.head_dim;
      return follows && part.head_dim == product.parts.front().head_dim;
    });
  }

  // By the same angles, which are known before the product is made.
  bool are_alike(const RotatedProduct& product) const {
    const graph::Operator& first = at(product.parts.front().op);
    const int positions = graph::input_or_none(first, 1);
    return (positions < 0 || graph::value_at(ir_, positions).producer < 0) &&
           std::all_of(product.parts.begin(), product.parts.end(), [&](const TurnedHeads& part) {
             const graph::Operator& op = at(part.op);
             return angles_of(op) == angles_of(first) && graph::input_or_none(op, 1) == positions;
           });
  }

  // Whether all others who read the product read other columns than those that are turned.
  bool are_read_apart(const RotatedProduct& product) const {
    const std::int64_t turned = product.heads * product.parts.front().head_dim;
    const auto is_part = [&](int op) {
      return std::any_of(product.parts.begin(), product.parts.end(),
                         [&](const TurnedHeads& part) { return part.op == op; });
    };
    for (int value = 0; value < static_cast<int>(ir_.values.size()); ++value) {
      const std::optional<View> view = placement_.view(value);
      if (!view || view->root != product.value) {
        continue;
      }
      const std::int64_t first = first_column(*view, placement_.extents(product.value).back());
      const std::vector<int>& readers = readers_.of(value);
      const bool is_apart = std::all_of(readers.begin(), readers.end(), [&](int reader) {
        const bool is_seen = reader != Readers::kBorder && is_view(at(reader)) &&
                             placement_.view(at(reader).outputs[0]);
        return is_seen || first >= turned || (reader != Readers::kBorder && is_part(reader));
      });
      if (!is_apart) {
        return false;
      }
    }
    return true;
  }

  // The least column of what a view shows of rows of so many; 0 where it may go from row to row.
  static std::int64_t first_column(const View& view, std::int64_t columns) {
    const std::int64_t first = view.offset % columns;
    std::int64_t last = first;
    for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
      if (view.strides[axis] % columns != 0) {
        last += (view.extents[axis] - 1) * view.strides[axis];
      }
    }
    return last < columns ? first : 0;
  }

  const Ir& ir_;
  Readers readers_;
  Placement placement_;
};

Ir rotated(const Ir& from, const std::vector<RotatedProduct>& products) {
  RewrittenGraph to(from);
  std::map<int, const RotatedProduct*> by_producer;
  std::set<int> is_gone;
  for (const RotatedProduct& product : products) {
    by_producer.emplace(graph::value_at(from, product.value).producer, &product);
    for (const TurnedHeads& part : product.parts) {
      is_gone.insert(part.op);
    }
  }
  for (std::size_t i = 0; i < from.operators.size(); ++i) {
    const graph::Operator& op = from.operators[i];
    if (is_gone.contains(static_cast<int>(i))) {
      to.replace(op.outputs[0], to.id(op.inputs[0]));
      continue;
    }
    to.copy(op);
    const auto found = by_producer.find(static_cast<int>(i));
    if (found == by_producer.end()) {
      continue;
    }
    const RotatedProduct& product = *found->second;
    const graph::Operator& rotary =
        from.operators[static_cast<std::size_t>(product.parts.front().op)];
    graph::Operator turn = to.translated(rotary);
    turn.kind = OpKind::RotaryHeads;
    turn.inputs[0] = to.id(product.value);
    turn.attributes["head_dim"] = product.parts.front().head_dim;
    turn.attributes["heads"] = product.heads;
    const int all = to.append(std::move(turn), name_of(from, product.value) + "_turned");
    to.replace(product.value, all);
  }
  return std::move(to).end();
}

// What is equal for products that are alike.
std::string kind_of(const Ir& ir, const RotatedProduct& product) {
  return fmt::format("{} {} {}", graph::value_at(ir, product.value).shape.text(),
                     name(graph::value_at(ir, product.value).dtype), product.heads);
}

}  // namespace

RotatedProducts rotate_products(const Ir& ir) {
  return {.ir = rotated(ir, RotaryFinder(ir).products())};
}

RotatedProducts rotate_products(const Ir& ir, const std::set<std::string>& kinds) {
  std::vector<RotatedProduct> products = RotaryFinder(ir).products();
  std::erase_if(products, [&](const RotatedProduct& product) {
    return !kinds.contains(kind_of(ir, product));
  });
  return {.ir = products.empty() ? ir : rotated(ir, products)};
}

RotatedProducts rotate_products_if_faster(RotatedProducts given, const TemplateLibrary& templates,
                                          const base::DeviceProfile& device,
                                          const BuildLayout& build_layout) {
  const Ir ir = given.ir;
  MaskArraysByMask masks(build_layout);
  return rewritten_if_faster(
      std::move(given), RotaryFinder(ir).products(),
      [&](const RotatedProduct& product) { return kind_of(ir, product); },
      [&](const std::vector<RotatedProduct>& products) {
        return RotatedProducts{.ir = rotated(ir, products)};
      },
      [&](const Ir& of) { return best_scheme(of, templates, device, masks); });
}

}  // namespace stof::fusion
