#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "stof/precision.hpp"

namespace stof {

// What runs a plan.
enum class Backend : std::uint8_t {
  Gpu,        // one GPU; an error says why there is none
  Auto,       // Gpu where this process may use one, else Reference
  Reference,  // the CPU, exactly: for tests, and for machines without a GPU
};

// Whether kernels that are not in the cache are compiled.
enum class JitMode : std::uint8_t {
  On,
  Off,       // no: they are a CacheError
  ReadOnly,  // yes, but they are not written to the disk
};

// How much building tries with a stopwatch, on the GPU that will run the plan. What was found
// before for the same graph and GPU is used whatever is asked for, as far as its kernels are the
// same.
enum class Tuning : std::uint8_t {
  None,   // nothing: the cost model chooses
  Quick,  // how operators are fused, with a few settings of each kernel
  Full,   // that, then the settings of the kernels
};

// How far a template that does not ship with the library has to get before it is used.
enum class Trust : std::uint8_t {
  Validated,  // its numbers are right on a GPU, for hostile inputs, and repeat
  Compiled,   // it renders and compiles in the cases that its contract names
};

// Whether norms are put off until behind the products that read them: the products then read what
// is not normalised, with weights that the gain is part of, and scale their results. Weights of
// which 16 bits cannot hold that leave all norms where they are, with an event and a word in
// Plan::explain.
enum class NormDeferral : std::uint8_t {
  Never,
  IfFaster,  // where the cost model says so
  Always,    // wherever it can be
};

// A step of the engine, for people who wait for it.
struct Event {
  // "fallback", "check", "quarantine" (of templates), "lower", "cache", "wait", "compile" (which
  // begins), "compiled", "tune"
  std::string stage;
  std::string name;         // of the graph or the template
  double milliseconds = 0;  // that it took; 0 where it has not ended or is none
  std::string detail;       // "registers 168, spills 0 bytes"
  double done = 0;          // share of what "tune" may take at most that is done, 1 at the end
};

// One line on stderr, for EngineOptions::on_event.
void print_progress(const Event& event);

struct EngineOptions {
  Backend backend = Backend::Gpu;
  Precision precision = Precision::Model;  // of the reference backend
  int device = 0;                          // as the CUDA runtime counts them

  // Builds for this target, such as "sm_90a", on a machine that needs no GPU, to fill a cache; such
  // plans cannot be bound. Empty: for the device.
  std::string target = {};
  // What the target is taken to be, by short name: "h200". Empty: one that has this target.
  std::string device_profile = {};

  // Folders of templates. They stand in for those of STOF_TEMPLATE_DIRS, and these for the embedded
  // ones.
  std::vector<std::filesystem::path> template_dirs = {};
  // What they need to be used. What the engine found out about them the cache keeps; others are
  // checked as it is made. Those that fail are left out, with an event, and Plan::explain says why.
  // Nothing: Validated, or Compiled where there is no GPU to run them on or JitMode::Off.
  std::optional<Trust> trust = {};
  // Where kernels are kept. Nothing: where the environment says; an empty path: in memory alone.
  std::optional<std::filesystem::path> cache_dir = {};
  // Folders as `stof compile --cache-dir` fills them, that ship with an application: asked in this
  // order for what the cache has not, trusted as the application is, and never written. What is in
  // one needs no compiler. Measurements of tuning are the cache's alone.
  std::vector<std::filesystem::path> packs = {};
  JitMode jit = JitMode::On;

  NormDeferral norm_deferral = NormDeferral::Never;

  // Of Engine::build, for the largest dims where they are symbolic; needs Backend::Gpu or Auto, and
  // a GPU.
  Tuning tuning = Tuning::None;
  double tuning_seconds = 0;  // that it may take, whole plans included; 0: 10 quick, 60 full
  // Ends tuning early: what is best by then is used.
  std::stop_token tuning_stop = {};

  // Called from any thread, one call at a time; it must not build or bind, which would wait for the
  // call to end. What it throws ends the build.
  std::function<void(const Event&)> on_event = {};
  // A stop ends builds with CancelledError.
  std::stop_token stop_token = {};
};

}  // namespace stof
