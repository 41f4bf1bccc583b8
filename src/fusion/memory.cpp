#include "fusion/memory.hpp"

#include <algorithm>
#include <cstddef>

namespace stof::fusion {

using kernel::Location;
using kernel::MemorySpace;

Memory::Memory(const graph::Ir& ir, const Placement& placement, kernel::Program& program)
    : ir_(ir), placement_(placement), program_(program), is_written_(ir.outputs.size(), false) {
  int input = 0;
  int weight = 0;
  for (std::size_t id = 0; id < ir.values.size(); ++id) {
    const graph::ValueRole role = ir.values[id]->role;
    if (role == graph::ValueRole::Input) {
      border_.emplace(static_cast<int>(id),
                      Location{.space = MemorySpace::Input, .index = input++});
    } else if (role == graph::ValueRole::Weight) {
      border_.emplace(static_cast<int>(id),
                      Location{.space = MemorySpace::Weight, .index = weight++});
    }
  }
  for (std::size_t i = 0; i < ir.outputs.size(); ++i) {
    const auto view = placement.view(ir.outputs[i].value);
    const bool is_whole = view && view->is_packed() && view->offset == 0 &&
                          view->element_count() == placement.root(view->root).element_count();
    if (is_whole) {
      is_written_[i] = border_
                           .emplace(view->root, Location{.space = MemorySpace::Output,
                                                         .index = static_cast<int>(i)})
                           .second;
    }
  }
}

Location Memory::locate(const View& view, int launch) {
  const std::int64_t offset = view.offset * size_bytes(view.dtype);
  if (const auto border = border_.find(view.root); border != border_.end()) {
    Location location = border->second;
    location.offset_bytes = offset;
    return location;
  }
  const auto known = arena_.find(view.root);
  const View root = placement_.root(view.root);
  const int index = known != arena_.end()
                        ? known->second
                        : touch(root.element_count() * size_bytes(root.dtype), launch);
  arena_.emplace(view.root, index);
  program_.arena[static_cast<std::size_t>(index)].last_launch = launch;
  return {.space = MemorySpace::Arena, .index = index, .offset_bytes = offset};
}

Location Memory::workspace(std::int64_t size_bytes, bool must_be_zero, int launch) {
  const int index = touch(size_bytes, launch);
  program_.arena[static_cast<std::size_t>(index)].must_be_zero = must_be_zero;
  return {.space = MemorySpace::Arena, .index = index};
}

int Memory::touch(std::int64_t size_bytes, int launch) {
  program_.arena.push_back(
      {.size_bytes = size_bytes, .first_launch = launch, .last_launch = launch});
  return static_cast<int>(program_.arena.size()) - 1;
}

std::vector<int> Memory::outputs_to_copy() const {
  std::vector<int> outputs;
  for (std::size_t i = 0; i < is_written_.size(); ++i) {
    if (!is_written_[i]) {
      outputs.push_back(static_cast<int>(i));
    }
  }
  return outputs;
}

}  // namespace stof::fusion
