#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/device_profile.hpp"
#include "compile/compiler.hpp"
#include "execute/device_program.hpp"
#include "render/renderer.hpp"
#include "validate/expected.hpp"
#include "validate/numeric_cases.hpp"
#include "validate/poisoned_run.hpp"

namespace stof::validate {

// What the numbers of a template are tried on.
struct Gpu {
  int device = 0;  // as the CUDA runtime counts them
  base::DeviceProfile profile;
};

// What the trial of a template found; it ends with the first fault.
struct NumericReport {
  std::string wrong;         // numbers that are, and where; empty where none are
  std::string unrepeatable;  // the same of runs that differ
  int cases = 0;
  int kernels = 0;  // programs: a case with a setting
  int runs = 0;
};

// Runs a template alone against the float64 reference of the operators that it stands for. What the
// reference gives is kept, for further renderings of the same contract. From one thread.
class NumericTrial {
 public:
  // Throws GraphError where the template takes none of its "tests".
  NumericTrial(TemplateAlone alone, Gpu gpu);

  // Every case with every setting on every kind of inputs, in memory full of NaN, and several times
  // with equal inputs. Throws TemplateError, CompileError and CudaError where a kernel cannot be
  // made, CancelledError.
  NumericReport run(const render::Renderer& renderer, const compile::Compiler& compiler,
                    const std::stop_token& stop = {});

  // The largest case against the other templates, an operator a kernel, in words: "rows 333, hidden
  // 1000: 3.1 us, unfused 7.9 us". Throws as run.
  std::string race(const render::Renderer& renderer, const compile::Compiler& compiler,
                   const std::stop_token& stop = {});

  const std::vector<NumericCase>& cases() const { return cases_; }

 private:
  struct Data {
    HostTensors tensors;
    std::vector<ExpectedOutput> outputs;
  };
  using Programs = std::vector<std::shared_ptr<const execute::DeviceProgram>>;

  Data& data(std::size_t one, InputKind kind);
  // Makes what several cases need, in parallel.
  void prepare(std::span<const std::size_t> cases);
  void fill(Data& data, std::size_t one, InputKind kind, int thread_count) const;
  void try_variant(std::size_t one, const NumericVariant& variant,
                   const std::shared_ptr<const execute::DeviceProgram>& program,
                   NumericReport& report);
  void repeat(PoisonedRun& run, const Data& data, NumericReport& report) const;

  TemplateAlone alone_;
  Gpu gpu_;
  std::vector<NumericCase> cases_;
  std::map<std::pair<std::size_t, InputKind>, Data> data_;
};

}  // namespace stof::validate
