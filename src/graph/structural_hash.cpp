// Colour refinement on the graph: a value's number mixes those of what it is made from (downwards)
// and of what reads it (upwards). Two rounds, so that what is seen upwards comes down again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "graph/canonical.hpp"
#include "graph/encode.hpp"

namespace stof::graph {

namespace {

constexpr int kRounds = 2;

using Hashes = std::vector<std::uint64_t>;

std::size_t at(int id) {
  return static_cast<std::size_t>(id);
}

std::uint64_t combine(std::initializer_list<std::uint64_t> parts) {
  base::Hasher hasher;
  for (const std::uint64_t part : parts) {
    hasher.update_integer(part);
  }
  return hasher.digest().low;
}

// Bounds instead of names.
std::string dim_text(const Dim& dim) {
  return dim.is_static() ? dim.text()
                         : fmt::format("{} {} {}", dim.symbols().size(), dim.min(), dim.max());
}

Hashes downwards(const Ir& ir, const Hashes& seeds) {
  Hashes hashes = seeds;
  const Encoding encoding{.value = [&](int id) { return hashes[at(id)]; }, .dim = dim_text};
  for (std::size_t id = 0; id < ir.values.size(); ++id) {
    if (ir.values[id]->producer < 0) {
      base::Hasher hasher;
      encode(hasher, *ir.values[id], encoding);
      hashes[id] = combine({hasher.digest().low, seeds[id]});
    }
  }
  for (const Operator& op : ir.operators) {
    base::Hasher hasher;
    encode(hasher, op, encoding);
    hasher.update_integer(op.segment < 0 ? 0 : 1);
    const std::uint64_t whole = hasher.digest().low;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      hashes[at(op.outputs[i])] = combine({whole, i, seeds[at(op.outputs[i])]});
    }
  }
  return hashes;
}

std::uint64_t combine_readers(Hashes readers) {
  std::ranges::sort(readers);
  base::Hasher hasher;
  for (const std::uint64_t reader : readers) {
    hasher.update_integer(reader);
  }
  return hasher.digest().low;
}

Hashes upwards(const Ir& ir, const Hashes& hashes) {
  std::vector<Hashes> readers(ir.values.size());
  for (const Output& output : ir.outputs) {
    readers[at(output.value)].push_back(1);
  }
  Hashes result(ir.values.size());
  for (std::size_t index = ir.operators.size(); index-- > 0;) {
    const Operator& op = ir.operators[index];
    std::uint64_t whole = 2;
    for (const int id : op.outputs) {
      result[at(id)] = combine_readers(std::move(readers[at(id)]));
      whole = combine({whole, hashes[at(id)], result[at(id)]});
    }
    const std::vector<int> operands = operand_ids(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      readers[at(operands[i])].push_back(combine({whole, i}));
    }
  }
  for (std::size_t id = 0; id < ir.values.size(); ++id) {
    if (ir.values[id]->producer < 0) {
      result[id] = combine_readers(std::move(readers[id]));
    }
  }
  return result;
}

}  // namespace

std::vector<std::uint64_t> structural_hashes(const Ir& ir) {
  Hashes hashes(ir.values.size());
  for (int round = 0; round < kRounds; ++round) {
    const Hashes down = downwards(ir, hashes);
    const Hashes up = upwards(ir, down);
    for (std::size_t id = 0; id < hashes.size(); ++id) {
      hashes[id] = combine({down[id], up[id]});
    }
  }
  return hashes;
}

}  // namespace stof::graph
