#include "execute/replay.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "cuda/device_scope.hpp"
#include "cuda/stream.hpp"

namespace stof::execute {

namespace {

constexpr std::size_t kTensorAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

std::size_t copy_bytes(const TensorContents& contents) {
  std::size_t sum = 0;
  for (const auto* tensors : {&contents.inputs, &contents.weights}) {
    for (const std::span<const std::byte> tensor : *tensors) {
      sum += aligned(tensor.size());
    }
  }
  for (const std::size_t bytes : contents.output_bytes) {
    sum += aligned(bytes);
  }
  return sum;
}

std::span<void* const> of_copy(const std::vector<void*>& pointers, int copy, int count) {
  const std::size_t each = pointers.size() / static_cast<std::size_t>(count);
  return std::span(pointers).subspan(static_cast<std::size_t>(copy) * each, each);
}

}  // namespace

int TensorCopies::count_for(const TensorContents& contents, std::size_t cache_bytes, int most) {
  const std::size_t each = std::max<std::size_t>(copy_bytes(contents), 1);
  return static_cast<int>(
      std::clamp<std::size_t>(cache_bytes / each + 1, 1, static_cast<std::size_t>(most)));
}

TensorCopies::TensorCopies(int device, const TensorContents& contents, int count)
    : count_(count),
      output_bytes_(contents.output_bytes),
      memory_(device, copy_bytes(contents) * static_cast<std::size_t>(count)) {
  const cuda::DeviceScope scope(device);
  const std::size_t each = copy_bytes(contents);
  std::byte* next = memory_.data();
  const auto take = [&next](std::vector<void*>& pointers, std::size_t bytes) {
    pointers.push_back(next);
    next += aligned(bytes);
    return pointers.back();
  };
  for (int copy = 0; copy < count; ++copy) {
    for (const std::span<const std::byte> tensor : contents.inputs) {
      void* const place = take(inputs_, tensor.size());
      if (copy == 0) {
        STOF_CUDA(cudaMemcpy(place, tensor.data(), tensor.size(), cudaMemcpyHostToDevice));
      }
    }
    for (const std::span<const std::byte> tensor : contents.weights) {
      void* const place = take(weights_, tensor.size());
      if (copy == 0) {
        STOF_CUDA(cudaMemcpy(place, tensor.data(), tensor.size(), cudaMemcpyHostToDevice));
      }
    }
    for (const std::size_t bytes : contents.output_bytes) {
      take(outputs_, bytes);
    }
    if (copy > 0) {
      STOF_CUDA(cudaMemcpy(memory_.data() + static_cast<std::size_t>(copy) * each, memory_.data(),
                           each, cudaMemcpyDeviceToDevice));
    }
  }
  STOF_CUDA(cudaDeviceSynchronize());  // streams of the caller do not wait for the default one
}

Pointers TensorCopies::pointers(int copy) const {
  return {.inputs = of_copy(inputs_, copy, count_),
          .outputs = of_copy(outputs_, copy, count_),
          .weights = of_copy(weights_, copy, count_)};
}

std::byte* TensorCopies::output(int index) const {
  return static_cast<std::byte*>(outputs_.at(static_cast<std::size_t>(index)));
}

void TensorCopies::spoil_outputs() const {
  const cuda::DeviceScope scope(device());
  constexpr int kNan = 0xff;
  for (std::size_t i = 0; i < output_bytes_.size(); ++i) {
    STOF_CUDA(cudaMemset(output(static_cast<int>(i)), kNan, output_bytes_[i]));
  }
  STOF_CUDA(cudaDeviceSynchronize());
}

void TensorCopies::read_output(int output, std::size_t offset, std::span<std::byte> bytes) const {
  STOF_CHECK(offset + bytes.size() <= output_bytes_.at(static_cast<std::size_t>(output)))
      << "replay: output " << output << " has no bytes " << offset << " to "
      << offset + bytes.size();
  const cuda::DeviceScope scope(device());
  STOF_CUDA(cudaDeviceSynchronize());
  STOF_CUDA(cudaMemcpy(bytes.data(), this->output(output) + offset, bytes.size(),
                       cudaMemcpyDeviceToHost));
}

Replay::Replay(const std::shared_ptr<const DeviceProgram>& program, const TensorCopies& copies,
               int runs)
    : runs_(runs) {
  const cuda::DeviceScope scope(copies.device());
  if (program->arena().size_bytes > 0) {
    workspace_.emplace(copies.device(), static_cast<std::size_t>(program->arena().size_bytes));
  }
  std::byte* const workspace = workspace_ ? workspace_->data() : nullptr;
  for (int copy = 0; copy < std::min(copies.count(), runs); ++copy) {
    bound_.push_back(std::make_unique<BoundProgram>(program, copies.pointers(copy), workspace,
                                                    /*has_graph=*/copy == 0));
  }
  std::vector<cuda::KernelLaunch> launches;
  for (int run = 0; run < runs; ++run) {
    const auto of_run = bound_[static_cast<std::size_t>(run) % bound_.size()]->launches();
    launches.insert(launches.end(), of_run.begin(), of_run.end());
  }
  STOF_CHECK(!launches.empty()) << "replay: nothing is launched";
  graph_.emplace(launches);
}

void Replay::run_once() const {
  const cuda::DeviceScope scope(bound_.front()->program().device());
  const cuda::Stream stream;
  bound_.front()->launch(stream.get());
  bound_.front()->synchronize(stream.get());
}

std::vector<std::vector<double>> time_in_turn(std::span<const Replay* const> replays, int samples) {
  // The host stays ahead of the GPU, which so never waits between two events for a launch.
  struct Sample {
    cuda::Event start;
    cuda::Event stop;
  };
  const cuda::Stream stream;
  for (const Replay* replay : replays) {
    replay->launch(stream.get());
  }
  std::vector<Sample> taken(replays.size() * static_cast<std::size_t>(samples));
  auto next = taken.begin();
  for (int i = 0; i < samples; ++i) {
    for (const Replay* replay : replays) {
      next->start.record(stream.get());
      replay->launch(stream.get());
      next++->stop.record(stream.get());
    }
  }
  stream.synchronize();
  std::vector<std::vector<double>> times_us(replays.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const std::size_t replay = i % replays.size();
    times_us[replay].push_back(taken[i].stop.microseconds_since(taken[i].start) /
                               replays[replay]->runs());
  }
  return times_us;
}

}  // namespace stof::execute
