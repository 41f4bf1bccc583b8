#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/gpu_backend.hpp"
#include "execute/device_program.hpp"

namespace stof::engine {

// One launch in the words of Plan::explain.
struct LaunchDescription {
  std::string label;  // what it computes: "linear_3, gelu_4"
  std::string file;   // of the template
  std::array<std::int64_t, 3> grid, block, cluster;
  std::int64_t static_shared_bytes = 0;
  std::int64_t dynamic_shared_bytes = 0;
  std::int64_t registers = 0;  // a thread
  std::int64_t spill_bytes = 0;
  bool is_programmatic = false;
  double predicted_us = 0;            // by the cost model
  std::optional<double> measured_us;  // by tuning: alone, on data that no cache holds
  std::vector<std::string> options;   // with predicted times: what runs, then what was not chosen
};

// A layout of a mask that is built on each run.
struct LayoutDescription {
  std::string mask;
  std::string first_reader;         // the label of the launch that it is built ahead of
  bool has_runs = false;            // the keys of each row, which are neighbours
  bool has_tiles = false;           // 64 x 64 ones, as lists or bitmaps
  std::int64_t max_part_tiles = 0;  // 0: no bound
  std::int64_t workspace_bytes = 0;
};

struct PlanDescription {
  std::string device;  // "NVIDIA H200"
  std::string target;  // "sm_90a"
  DimValues dims;
  std::int64_t kernel_count = 0;
  std::int64_t workspace_bytes = 0;
  std::string scheme;  // the code of the fusion scheme and what it is; empty where none says it
  std::optional<Tuned> tuned;
  std::vector<std::string> deferred_norms;  // names of what is put off
  std::string deferral_refusal;             // why none is; empty where nothing speaks against it
  std::vector<ForeignTemplate> foreign_templates;  // of the engine, used here or not
  std::vector<LayoutDescription> layouts;
  std::vector<LaunchDescription> launches;
};

struct LoadedCode {
  std::shared_ptr<const GpuCode> code;
  std::shared_ptr<const execute::DeviceProgram> program;  // null until it is loaded
};

// A normalised graph for one GPU or target: its code for each choice of dims that was asked for.
// Safe to use from several threads.
class GpuPlan {
 public:
  // Makes the code at the largest dims, tuned where the engine's options ask for it. Throws what
  // Engine::build does.
  GpuPlan(std::shared_ptr<const GpuBackend> backend, graph::Ir primitive);

  // The code and that loaded on the GPU. Throws what Engine::build does, and GraphError where there
  // is none.
  LoadedCode load(const DimValues& dims) const;
  // From now on no norms are deferred, for this reason; other code is made.
  void refuse_deferral(const std::string& reason) const;

  // Weights that some choice of dims may read as one: each lies behind the other.
  const std::vector<fusion::JoinedWeight>& weights_together() const { return weights_together_; }

  std::int64_t workspace_bytes(const DimValues& dims) const;
  // With no dims for a graph that has some: at the largest.
  PlanDescription describe(const DimValues& dims) const;

  const GpuBackend& backend() const { return *backend_; }

 private:
  LoadedCode& variant(const DimValues& dims, bool may_tune = false) const;
  // Made where it is not there; tuned then, where that is wished.
  std::shared_ptr<const GpuCode> code(const DimValues& dims, bool may_tune = false) const;
  DimValues largest_dims() const;

  std::shared_ptr<const GpuBackend> backend_;  // shared with the engine and its other plans
  graph::Ir primitive_;
  std::vector<fusion::JoinedWeight> weights_together_;
  mutable std::mutex mutex_;
  mutable std::map<DimValues, LoadedCode> variants_;
  mutable std::string deferral_refusal_;
};

}  // namespace stof::engine
