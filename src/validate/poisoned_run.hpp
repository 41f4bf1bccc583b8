#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/bound_program.hpp"
#include "execute/device_memory.hpp"
#include "execute/device_program.hpp"
#include "graph/ir.hpp"
#include "validate/hostile_tensors.hpp"

namespace stof::validate {

// A program with tensors of a graph on a GPU, where everything that it was not given is poison:
// outputs, the workspace, and what lies around each tensor. From one thread; all throw CudaError.
class PoisonedRun {
 public:
  PoisonedRun(std::shared_ptr<const execute::DeviceProgram> program, const graph::Ir& ir,
              const HostTensors& tensors);

  static constexpr int kNan = 0xff;     // bytes that are a NaN in every floating dtype
  static constexpr int kNumber = 0x3c;  // and ones that are a number near 1 in float16

  // Runs once, with poison of these bytes. What must be zero in the workspace is left as the run
  // before left it.
  void run(int poison);

  // Of the last run, by name.
  HostTensor output(const std::string& name) const;
  std::map<std::string, std::vector<std::byte>> output_bytes() const;
  // What the last run changed that was none of its own: "input x", "what lies behind output y".
  std::optional<std::string> damage() const;

 private:
  struct Piece {
    std::string name;
    bool is_output = false;
    DType dtype = DType::Float32;
    std::vector<std::int64_t> shape;
    std::size_t offset = 0;
    std::size_t size = 0;
  };

  void add(const std::string& name, const graph::Value& value, bool is_output);

  std::shared_ptr<const execute::DeviceProgram> program_;
  std::vector<Piece> pieces_;
  std::size_t end_ = 0;
  std::vector<std::byte> before_;
  std::vector<std::byte> after_;
  std::optional<execute::DeviceMemory> memory_;
  std::optional<execute::DeviceMemory> workspace_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
  std::optional<execute::BoundProgram> bound_;
  const HostTensors* tensors_;  // of the caller
};

}  // namespace stof::validate
