#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/gpu_backend.hpp"
#include "execute/device_program.hpp"

namespace stof::engine {

// A normalised graph for one GPU or target: its code for each choice of dims that was asked for.
// Safe to use from several threads.
class GpuPlan {
 public:
  // Makes the code at the largest dims. Throws what Engine::build does.
  GpuPlan(std::shared_ptr<const GpuBackend> backend, graph::Ir primitive);

  // The code loaded on the GPU. Throws what Engine::build does, and GraphError where there is none.
  std::shared_ptr<const execute::DeviceProgram> load(const DimValues& dims) const;

  std::int64_t workspace_bytes(const DimValues& dims) const;
  // With no dims for a graph that has some: at the largest.
  std::string explain(const DimValues& dims) const;

  const GpuBackend& backend() const { return *backend_; }

 private:
  struct Variant {
    std::shared_ptr<const GpuCode> code;
    std::shared_ptr<const execute::DeviceProgram> program;  // null until it is loaded
  };

  Variant& variant(const DimValues& dims) const;
  std::shared_ptr<const GpuCode> code(const DimValues& dims) const;
  DimValues largest_dims() const;

  std::shared_ptr<const GpuBackend> backend_;  // shared with the engine and its other plans
  graph::Ir primitive_;
  mutable std::mutex mutex_;
  mutable std::map<DimValues, Variant> variants_;
};

}  // namespace stof::engine
