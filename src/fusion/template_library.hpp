#pragma once

#include <map>
#include <string>
#include <vector>

#include "contract/contract.hpp"

namespace stof::fusion {

struct KernelTemplate {
  std::string file;  // below the template roots: "norm/layer_norm.jinja"
  contract::TemplateContract contract;
};

// Every kernel template there is, in order of file.
using TemplateLibrary = std::vector<KernelTemplate>;

// Reads the contracts of those files that have one, and leaves out templates that others of their
// name replace; those that others replace take the problems that these do not. Throws
// TemplateError; also where two templates share a name, or one replaces what is not there.
TemplateLibrary read_templates(const std::map<std::string, std::string>& texts);

}  // namespace stof::fusion
