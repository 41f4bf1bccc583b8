#include "validate/poisoned_run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "cuda/device_scope.hpp"
#include "cuda/stream.hpp"
#include "stof/error.hpp"

namespace stof::validate {

namespace {

// Around each tensor: more than a kernel reads at once, so that it finds no neighbour's numbers.
constexpr std::size_t kMargin = 4096;
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

PoisonedRun::PoisonedRun(std::shared_ptr<const execute::DeviceProgram> program, const graph::Ir& ir,
                         const HostTensors& tensors)
    : program_(std::move(program)), end_(kMargin), tensors_(&tensors) {
  for (const auto& value : ir.values) {
    if (value->role != graph::ValueRole::Result) {
      STOF_CHECK(value->role == graph::ValueRole::Input) << value->name << " is no input";
      add(value->name, *value, false);
    }
  }
  for (const graph::Output& output : ir.outputs) {
    add(output.name, graph::value_at(ir, output.value), true);
  }
  const int device = program_->device();
  memory_.emplace(device, end_);
  const execute::ArenaLayout& arena = program_->arena();
  if (arena.size_bytes > 0) {
    workspace_.emplace(device, static_cast<std::size_t>(arena.size_bytes));  // zeroed
  }
  for (const Piece& piece : pieces_) {
    (piece.is_output ? outputs_ : inputs_).push_back(memory_->data() + piece.offset);
  }
  const execute::Pointers pointers{.inputs = inputs_, .outputs = outputs_, .weights = {}};
  bound_.emplace(program_, pointers, workspace_ ? workspace_->data() : nullptr);
}

void PoisonedRun::add(const std::string& name, const graph::Value& value, bool is_output) {
  Piece piece{.name = name,
              .is_output = is_output,
              .dtype = value.dtype,
              .shape = value.shape.sizes(),
              .offset = end_,
              .size = 0};
  piece.size = HostTensor(piece.dtype, piece.shape).bytes().size();
  end_ += aligned(piece.size) + kMargin;
  pieces_.push_back(std::move(piece));
}

void PoisonedRun::run(int poison) {
  before_.resize(end_);
  std::memset(before_.data(), poison, end_);
  for (const Piece& piece : pieces_) {
    if (!piece.is_output) {
      std::memcpy(before_.data() + piece.offset, tensors_->at(piece.name).bytes().data(),
                  piece.size);
    }
  }
  memory_->write(before_);
  const execute::ArenaLayout& arena = program_->arena();
  if (workspace_ && arena.size_bytes > arena.zero_bytes) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(arena.size_bytes - arena.zero_bytes));
    std::memset(bytes.data(), poison, bytes.size());
    workspace_->write(bytes, static_cast<std::size_t>(arena.zero_bytes));
  }
  const cuda::DeviceScope scope(program_->device());
  const cuda::Stream stream;
  bound_->launch(stream.get());
  bound_->synchronize(stream.get());
  after_.resize(end_);
  memory_->read(after_);
}

HostTensor PoisonedRun::output(const std::string& name) const {
  for (const Piece& piece : pieces_) {
    if (piece.is_output && piece.name == name) {
      HostTensor tensor(piece.dtype, piece.shape);
      std::copy_n(after_.begin() + static_cast<std::ptrdiff_t>(piece.offset), piece.size,
                  tensor.bytes().begin());
      return tensor;
    }
  }
  throw InternalError("poisoned run: there is no output " + name);
}

std::map<std::string, std::vector<std::byte>> PoisonedRun::output_bytes() const {
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const Piece& piece : pieces_) {
    if (piece.is_output) {
      const auto begin = after_.begin() + static_cast<std::ptrdiff_t>(piece.offset);
      bytes.emplace(piece.name,
                    std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(piece.size)));
    }
  }
  return bytes;
}

std::optional<std::string> PoisonedRun::damage() const {
  std::size_t checked = 0;
  std::string ahead = "what lies ahead of all tensors";
  const auto is_changed = [&](std::size_t end) {
    return std::memcmp(before_.data() + checked, after_.data() + checked, end - checked) != 0;
  };
  for (const Piece& piece : pieces_) {
    if (is_changed(piece.offset)) {
      return ahead;
    }
    checked = piece.offset;
    if (!piece.is_output && is_changed(piece.offset + piece.size)) {
      return fmt::format("input {}", piece.name);
    }
    checked += piece.size;
    ahead = fmt::format("what lies behind {} {}", piece.is_output ? "output" : "input", piece.name);
  }
  return is_changed(end_) ? std::optional(ahead) : std::nullopt;
}

}  // namespace stof::validate
