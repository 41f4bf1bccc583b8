#include "graph/canonical.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "graph/dim_text.hpp"
#include "graph/encode.hpp"
#include "graph/op_info.hpp"
#include "stof/graph.hpp"

namespace stof {

std::string Graph::canonical_digest() const {
  return graph::canonicalise(*ir_).digest.hex();
}

}  // namespace stof

namespace stof::graph {

namespace {

// Where the digest covers more or other things, this changes.
constexpr std::string_view kDigestVersion = "stof graph 1";

// Numbers values, and gives the symbolic extents names of their own.
class Numbering {
 public:
  Numbering(const Ir& ir, const Canonical& canonical) : ir_(ir), numbers_(ir.values.size(), -1) {
    for (const int index : canonical.operators) {
      const Operator& op = ir.operators[at(index)];
      for (const int id : operand_ids(op)) {
        add_leaf(id);
      }
      for (const int id : op.outputs) {
        numbers_[at(id)] = next_++;
      }
    }
    for (const int output : canonical.outputs) {
      add_leaf(ir.outputs[at(output)].value);
    }
    name_dims(canonical);
  }

  std::uint64_t number(int id) const {
    STOF_CHECK(numbers_[at(id)] >= 0) << "value " << id << " has no canonical number";
    return static_cast<std::uint64_t>(numbers_[at(id)]);
  }

  std::string text(const Dim& dim) const {
    return dim.is_static() ? dim.text() : parse_dim(dim.text(), renamed_).text();
  }

  const std::vector<int>& leaves() const { return leaves_; }
  const std::vector<std::string>& dims() const { return dims_; }

 private:
  void add_leaf(int id) {
    if (numbers_[at(id)] < 0) {
      STOF_CHECK(ir_.values[at(id)]->producer < 0)
          << "value " << id << " is used before it is made";
      numbers_[at(id)] = next_++;
      leaves_.push_back(id);
    }
  }

  void name_dim(const std::string& name) {
    const Dim& dim = ir_.dims.at(name);
    const std::string canonical = fmt::format("d{}", renamed_.size());
    if (renamed_.emplace(name, Dim::symbol(canonical, dim.min(), dim.max())).second) {
      dims_.push_back(name);
    }
  }

  // Symbols that are an extent by themselves come first: within a longer extent only their names
  // would order them.
  void name_dims(const Canonical& canonical) {
    std::vector<Dim> extents;
    for (const int id : leaves_) {
      const auto dims = ir_.values[at(id)]->shape.dims();
      extents.insert(extents.end(), dims.begin(), dims.end());
    }
    for (const int index : canonical.operators) {
      const std::vector<Dim> dims = attribute_extents(ir_.operators[at(index)]);
      extents.insert(extents.end(), dims.begin(), dims.end());
    }
    for (const bool is_alone : {true, false}) {
      for (const Dim& extent : extents) {
        const auto symbols = extent.symbols();
        for (const auto& [name, range] : symbols) {
          if (!is_alone || symbols.size() == 1) {
            name_dim(name);
          }
        }
      }
    }
  }

  const Ir& ir_;
  std::vector<int> numbers_;
  std::vector<int> leaves_;
  std::vector<std::string> dims_;
  std::map<std::string, Dim> renamed_;
  int next_ = 0;
};

base::Digest digest_of(const Ir& ir, const Canonical& canonical, const Numbering& numbering) {
  const Encoding encoding{.value = [&](int id) { return numbering.number(id); },
                          .dim = [&](const Dim& dim) { return numbering.text(dim); }};
  base::Hasher hasher;
  hasher.update_sized(kDigestVersion);
  for (const std::string& name : numbering.dims()) {
    hasher.update_integer(static_cast<std::uint64_t>(ir.dims.at(name).min()));
    hasher.update_integer(static_cast<std::uint64_t>(ir.dims.at(name).max()));
  }
  hasher.update_integer(numbering.leaves().size());
  for (const int id : numbering.leaves()) {
    hasher.update_integer(numbering.number(id));
    encode(hasher, *ir.values[at(id)], encoding);
  }
  std::map<int, std::uint64_t> segments;
  for (const int index : canonical.operators) {
    const Operator& op = ir.operators[at(index)];
    encode(hasher, op, encoding);
    const std::uint64_t segment =
        op.segment < 0 ? 0 : segments.emplace(op.segment, segments.size() + 1).first->second;
    hasher.update_integer(segment);
  }
  for (const int output : canonical.outputs) {
    hasher.update_integer(numbering.number(ir.outputs[at(output)].value));
  }
  return hasher.digest();
}

}  // namespace

Canonical canonicalise(const Ir& ir) {
  Canonical canonical;
  canonical.outputs = order_outputs(ir);
  canonical.operators = canonical_order(ir, canonical.outputs);
  const Numbering numbering(ir, canonical);
  for (const int id : numbering.leaves()) {
    const bool is_weight = ir.values[at(id)]->role == ValueRole::Weight;
    (is_weight ? canonical.weights : canonical.inputs).push_back(id);
  }
  canonical.dims = numbering.dims();
  canonical.digest = digest_of(ir, canonical, numbering);
  return canonical;
}

}  // namespace stof::graph
