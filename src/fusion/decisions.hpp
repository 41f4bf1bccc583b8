#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fusion/scheme.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// A kernel and its parameters for one problem.
struct Setting {
  std::string kernel;  // the contract's name
  kernel::KernelConfig config;

  friend bool operator==(const Setting&, const Setting&) = default;
};

// What lowering is told instead of choosing itself.
struct Decisions {
  std::optional<Scheme> scheme;             // of operator_order() of the graph
  std::map<std::string, Setting> settings;  // by problem_key()
  bool lists_all = false;  // Lowered::options has every setting that is allowed, up to kMostListed
  bool is_prepared = false;  // the graph comes from prepare(), or is a part of one that does

  // nullptr where there is none for the problem.
  const Setting* find(const nlohmann::json& problem) const;
};

// By which Decisions know a problem (see problem.hpp): equal for equal problems only.
std::string problem_key(const nlohmann::json& problem);

}  // namespace stof::fusion
