#include "execute/bound_program.hpp"

#include <cstdint>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "cuda/device_scope.hpp"
#include "cuda/tensor_map.hpp"

namespace stof::execute {

using kernel::LaunchArgument;
using kernel::LaunchRecord;
using kernel::Location;
using kernel::MemorySpace;
using kernel::TensorMap;

namespace {

static_assert(static_cast<int>(MemorySpace::Input) == 0 &&
              static_cast<int>(MemorySpace::Output) == 1 &&
              static_cast<int>(MemorySpace::Weight) == 2);

dim3 to_dim3(const std::array<std::int64_t, 3>& extents) {
  return {static_cast<unsigned>(extents[0]), static_cast<unsigned>(extents[1]),
          static_cast<unsigned>(extents[2])};
}

cuda::LaunchConfig config_of(const LaunchRecord& record) {
  return {.grid = to_dim3(record.grid),
          .block = to_dim3(record.block),
          .cluster = to_dim3(record.cluster),
          .dynamic_shared_bytes = static_cast<std::size_t>(record.shared_bytes),
          .is_programmatic = record.is_programmatic};
}

std::byte* advance(void* pointer, std::int64_t offset_bytes) {
  return static_cast<std::byte*>(pointer) + offset_bytes;
}

CUtensorMapDataType map_dtype(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::BFloat16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::Float32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::Int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::Int64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::UInt8:
    case DType::Bool:
      break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

cuda::TensorMapSpec map_spec(const TensorMap& map, void* data) {
  cuda::TensorMapSpec spec;
  spec.data = data;
  spec.dtype = map_dtype(map.dtype);
  spec.extents.assign(map.extents.rbegin(), map.extents.rend());
  spec.box.assign(map.box.rbegin(), map.box.rend());
  for (auto stride = map.strides.rbegin() + 1; stride != map.strides.rend(); ++stride) {
    spec.strides_bytes.push_back(static_cast<std::uint64_t>(*stride) *
                                 static_cast<std::uint64_t>(size_bytes(map.dtype)));
  }
  return spec;
}

}  // namespace

BoundProgram::BoundProgram(std::shared_ptr<const DeviceProgram> program, const Pointers& pointers,
                           void* workspace, bool has_graph)
    : program_(std::move(program)),
      workspace_(static_cast<std::byte*>(workspace)),
      tensors_({std::vector<void*>(pointers.inputs.begin(), pointers.inputs.end()),
                std::vector<void*>(pointers.outputs.begin(), pointers.outputs.end()),
                std::vector<void*>(pointers.weights.begin(), pointers.weights.end())}) {
  const cuda::DeviceScope scope(program_->device());
  make_workspace();
  make_layouts();
  make_slots();
  make_launches();
  if (has_graph && !launches_.empty()) {
    graph_.emplace(launches_);
  }
}

std::byte* BoundProgram::address(const Location& location) const {
  const auto index = static_cast<std::size_t>(location.index);
  if (location.space == MemorySpace::Constant) {
    return program_->constant(location.index) + location.offset_bytes;
  }
  if (location.space == MemorySpace::Arena) {
    return workspace_ + program_->arena().offsets[index] + location.offset_bytes;
  }
  const std::vector<void*>& tensors = tensors_.at(static_cast<std::size_t>(location.space));
  STOF_CHECK(index < tensors.size())
      << "program: it reads tensor " << index << " of " << tensors.size();
  return advance(tensors[index], location.offset_bytes);
}

void BoundProgram::make_workspace() {
  const ArenaLayout& arena = program_->arena();
  if (workspace_ == nullptr && arena.size_bytes > 0) {
    own_workspace_.emplace(static_cast<std::size_t>(arena.size_bytes));
    workspace_ = own_workspace_->data();
  }
  STOF_CHECK(reinterpret_cast<std::uintptr_t>(workspace_) % kArenaAlignment == 0)
      << "program: the workspace is not aligned to " << kArenaAlignment << " bytes";
  if (arena.zero_bytes > 0) {
    STOF_CUDA(cudaMemset(workspace_, 0, static_cast<std::size_t>(arena.zero_bytes)));
    STOF_CUDA(cudaDeviceSynchronize());  // streams of the caller do not wait for the default one
  }
}

void BoundProgram::make_layouts() {
  for (std::size_t i = 0; i < program_->layouts().size(); ++i) {
    builds_.push_back(
        {.layout = std::make_unique<BoundLayout>(
             program_->layouts()[i], [this](const Location& location) { return address(location); },
             workspace_ + program_->layout_offset(i))});
  }
}

// Layouts come ahead of the first launch that reads them.
void BoundProgram::make_slots() {
  for (std::size_t space = 0; space < uses_.size(); ++space) {
    uses_[space].resize(tensors_[space].size());
  }
  std::size_t launch = 0;
  auto build = builds_.begin();
  auto layout = program_->layouts().begin();
  for (std::size_t i = 0; i < program_->launches().size(); ++i, ++launch) {
    for (; build != builds_.end() && std::cmp_equal(layout->first_launch, i); ++build, ++layout) {
      build->first = launch;
      launch += build->layout->launches().all().size();
    }
    for (const LaunchArgument& argument : program_->launches()[i].arguments) {
      add_slot(argument, launch);
    }
  }
  STOF_CHECK(build == builds_.end()) << "program: layouts are not in order of their launches";
}

void BoundProgram::add_slot(const LaunchArgument& argument, std::size_t launch) {
  const std::size_t slot = slots_.size();
  if (const auto* location = std::get_if<Location>(&argument)) {
    slots_.push_back({});
    add_pointer(*location,
                {.launch = launch, .slot = slot, .offset_bytes = location->offset_bytes});
  } else if (const auto* map = std::get_if<TensorMap>(&argument)) {
    slots_.push_back({});
    maps_.emplace_back();
    add_pointer(map->data, {.launch = launch,
                            .slot = maps_.size() - 1,
                            .offset_bytes = map->data.offset_bytes,
                            .map = map});
  } else if (const auto* array = std::get_if<kernel::LayoutArray>(&argument)) {
    const BoundLayout& of = *builds_[static_cast<std::size_t>(array->layout)].layout;
    slots_.push_back(to_slot(of.array(*array)));
  } else {
    slots_.push_back(to_slot(argument));
  }
}

void BoundProgram::add_pointer(const Location& location, Use use) {
  fill(use, address(location));
  if (location.space != MemorySpace::Constant && location.space != MemorySpace::Arena) {
    uses_.at(static_cast<std::size_t>(location.space))[static_cast<std::size_t>(location.index)]
        .push_back(use);
  }
}

void BoundProgram::fill(const Use& use, std::byte* data) {
  if (use.map == nullptr) {
    slots_[use.slot] = to_slot(data);
  } else {
    maps_[use.slot] = cuda::encode_tensor_map(map_spec(*use.map, data));
  }
}

void BoundProgram::make_launches() {
  arguments_.reserve(slots_.size());
  auto next_map = maps_.begin();
  for (const LaunchRecord& record : program_->launches()) {
    for (const LaunchArgument& argument : record.arguments) {
      const bool is_map = std::holds_alternative<TensorMap>(argument);
      arguments_.push_back(is_map ? static_cast<void*>(&*next_map++) : &slots_[arguments_.size()]);
    }
  }
  std::span<void* const> rest = arguments_;
  auto build = builds_.begin();
  for (const LaunchRecord& record : program_->launches()) {
    for (; build != builds_.end() && build->first == launches_.size(); ++build) {
      for (const cuda::KernelLaunch& launch : build->layout->launches().all()) {
        launch.kernel.load();
        launches_.push_back(launch);
      }
    }
    launches_.push_back({.kernel = program_->kernel(record.kernel),
                         .config = config_of(record),
                         .arguments = rest.first(record.arguments.size())});
    rest = rest.subspan(record.arguments.size());
  }
}

void BoundProgram::set_arguments(std::size_t launch) {
  graph_->set_arguments(launch, launches_[launch]);
}

void BoundProgram::set(MemorySpace space, int index, void* pointer) {
  const cuda::DeviceScope scope(program_->device());
  const auto place = static_cast<std::size_t>(index);
  tensors_.at(static_cast<std::size_t>(space)).at(place) = pointer;
  const std::vector<Use>& uses = uses_.at(static_cast<std::size_t>(space)).at(place);
  for (const Use& use : uses) {
    fill(use, advance(pointer, use.offset_bytes));
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i == 0 || uses[i - 1].launch != uses[i].launch) {
      set_arguments(uses[i].launch);
    }
  }
  for (const Build& build : builds_) {
    if (build.layout->reads(space, index)) {
      set_layout(build);
    }
  }
}

void BoundProgram::set_layout(const Build& build) {
  build.layout->set([this](const Location& location) { return address(location); });
  std::size_t launch = build.first;
  for (const cuda::KernelLaunch& again : build.layout->launches().all()) {
    launches_[launch] = again;
    set_arguments(launch++);
  }
}

void BoundProgram::synchronize(cudaStream_t stream) const {
  const cuda::DeviceScope scope(program_->device());
  STOF_CUDA(cudaStreamSynchronize(stream));
  check();
}

void BoundProgram::check() const {
  for (const Build& build : builds_) {
    build.layout->check();
  }
}

void BoundProgram::launch(cudaStream_t stream) const {
  if (!graph_) {
    return;
  }
  const cuda::DeviceScope scope(program_->device());
  if (!cuda::is_capturing(stream)) {
    graph_->launch(stream);
    return;
  }
  for (const cuda::KernelLaunch& launch : launches_) {
    launch.kernel.launch(launch.config, launch.arguments, stream);
  }
}

}  // namespace stof::execute
