#include "execute/device_program.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "cuda/device_scope.hpp"
#include "execute/argument.hpp"

namespace stof::execute {

using kernel::ConstantArray;
using kernel::LaunchArgument;
using kernel::LaunchRecord;
using kernel::Location;
using kernel::MemorySpace;
using kernel::Program;

namespace {

std::int64_t align_up(std::int64_t size_bytes) {
  return (size_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool is_index(std::int64_t index, std::size_t count) {
  return index >= 0 && index < static_cast<std::int64_t>(count);
}

void check_argument(const Program& program, const LaunchRecord& launch,
                    const LaunchArgument& argument) {
  if (const auto* array = std::get_if<kernel::LayoutArray>(&argument)) {
    STOF_CHECK(is_index(array->layout, program.layouts.size()))
        << "program: launch '" << launch.label << "' reads layout " << array->layout;
  }
  const auto* map = std::get_if<kernel::TensorMap>(&argument);
  const auto* location = map != nullptr ? &map->data : std::get_if<Location>(&argument);
  if (location == nullptr) {
    return;
  }
  const bool is_arena = location->space == MemorySpace::Arena;
  if (is_arena || location->space == MemorySpace::Constant) {
    STOF_CHECK(
        is_index(location->index, is_arena ? program.arena.size() : program.constants.size()))
        << "program: launch '" << launch.label << "' reads " << (is_arena ? "arena" : "constant")
        << " " << location->index;
  }
}

void check_program(const Program& program) {
  for (const LaunchRecord& launch : program.launches) {
    STOF_CHECK(is_index(launch.kernel, program.kernels.size()))
        << "program: launch '" << launch.label << "' has kernel " << launch.kernel;
    for (const auto& extents : {launch.grid, launch.block, launch.cluster}) {
      STOF_CHECK(
          std::ranges::all_of(extents, [](std::int64_t n) { return n > 0 && n < 1LL << 31; }))
          << "program: launch '" << launch.label << "' has an empty or too large extent";
    }
    for (const LaunchArgument& argument : launch.arguments) {
      check_argument(program, launch, argument);
    }
  }
}

Program checked(Program program) {
  check_program(program);
  return program;
}

// One array that several constants share has one place.
std::vector<std::int64_t> place_constants(const std::vector<ConstantArray>& constants) {
  std::vector<std::int64_t> offsets;
  std::map<const void*, std::int64_t> known;
  std::int64_t end = 0;
  for (const ConstantArray& constant : constants) {
    STOF_CHECK(constant != nullptr) << "program: a constant has no bytes";
    const auto [place, is_new] = known.emplace(constant.get(), end);
    offsets.push_back(place->second);
    end += is_new ? align_up(static_cast<std::int64_t>(constant->size())) : 0;
  }
  return offsets;
}

cuda::DeviceArray<std::byte> upload(int device, const std::vector<ConstantArray>& constants,
                                    const std::vector<std::int64_t>& offsets) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const auto begin = static_cast<std::size_t>(offsets[i]);
    bytes.resize(std::max(bytes.size(), begin + constants[i]->size()));
    std::ranges::copy(*constants[i], bytes.begin() + offsets[i]);
  }
  const cuda::DeviceScope scope(device);
  return cuda::DeviceArray<std::byte>(std::span<const std::byte>(bytes));
}

// The driver takes what it is given, and as much of it as the kernel has parameters.
void check_arguments(const LaunchRecord& launch, const std::vector<std::size_t>& sizes) {
  STOF_CHECK(launch.arguments.size() == sizes.size())
      << "program: launch '" << launch.label << "' has " << launch.arguments.size()
      << " arguments, its kernel takes " << sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t size_bytes = argument_bytes(launch.arguments[i]);
    STOF_CHECK(size_bytes == sizes[i])
        << "program: argument " << i << " of launch '" << launch.label << "' has " << size_bytes
        << " bytes, its kernel takes " << sizes[i];
  }
}

std::int64_t most_shared_bytes(const Program& program, std::size_t kernel) {
  std::int64_t most = 0;
  for (const LaunchRecord& launch : program.launches) {
    most = std::max(most, std::cmp_equal(launch.kernel, kernel) ? launch.shared_bytes : 0);
  }
  return most;
}

}  // namespace

DeviceProgram::DeviceProgram(int device, Program program,
                             std::span<const std::span<const std::byte>> cubins)
    : device_(device),
      program_(checked(std::move(program))),
      arena_(lay_out_arena(program_)),
      constant_offsets_(place_constants(program_.constants)),
      constants_(upload(device, program_.constants, constant_offsets_)) {
  program_.constants.clear();
  load_kernels(cubins);
}

void DeviceProgram::load_kernels(std::span<const std::span<const std::byte>> cubins) {
  STOF_CHECK(cubins.size() == program_.kernels.size())
      << "program: " << cubins.size() << " cubins for " << program_.kernels.size() << " kernels";
  const cuda::DeviceScope scope(device_);
  for (std::size_t i = 0; i < cubins.size(); ++i) {
    libraries_.emplace_back(cubins[i]);
    kernels_.push_back(libraries_.back().kernel(program_.kernels[i]));
    kernels_.back().load();
    const std::int64_t shared_bytes = most_shared_bytes(program_, i);
    if (shared_bytes > kernels_.back().attributes().maxDynamicSharedSizeBytes) {
      kernels_.back().allow_dynamic_shared_bytes(static_cast<std::size_t>(shared_bytes));
    }
  }
  for (const LaunchRecord& launch : program_.launches) {
    check_arguments(launch, kernel(launch.kernel).argument_sizes());
  }
}

}  // namespace stof::execute
