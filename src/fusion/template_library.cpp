#include "fusion/template_library.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "stof/error.hpp"

namespace stof::fusion {

TemplateLibrary read_templates(const std::map<std::string, std::string>& texts) {
  TemplateLibrary library;
  for (const auto& [file, text] : texts) {
    if (!contract::has_contract(text)) {
      continue;
    }
    KernelTemplate kernel{.file = file, .contract = contract::parse_contract(file, text)};
    for (const KernelTemplate& other : library) {
      if (other.contract.name == kernel.contract.name) {
        throw TemplateError(
            file, 1, 1,
            fmt::format("the name '{}' is taken by '{}'", kernel.contract.name, other.file));
      }
    }
    library.push_back(std::move(kernel));
  }
  return library;
}

}  // namespace stof::fusion
