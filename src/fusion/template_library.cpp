#include "fusion/template_library.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "stof/error.hpp"

namespace stof::fusion {

namespace {

void leave_out_replaced(TemplateLibrary& library) {
  std::set<std::string> replaced;  // files
  for (const KernelTemplate& kernel : library) {
    const std::string& name = kernel.contract.replaces;
    const auto found = std::ranges::find_if(library, [&](const KernelTemplate& other) {
      return &other != &kernel && other.contract.name == name;
    });
    if (!name.empty() && found == library.end()) {
      throw TemplateError(kernel.file, 1, 1,
                          fmt::format("it replaces '{}', and no template has that name", name));
    }
    if (!name.empty()) {
      replaced.insert(found->file);
    }
  }
  std::erase_if(library,
                [&](const KernelTemplate& kernel) { return replaced.contains(kernel.file); });
}

}  // namespace

TemplateLibrary read_templates(const std::map<std::string, std::string>& texts) {
  TemplateLibrary library;
  for (const auto& [file, text] : texts) {
    if (contract::has_contract(text)) {
      library.push_back({.file = file, .contract = contract::parse_contract(file, text)});
    }
  }
  leave_out_replaced(library);
  std::map<std::string, std::string> files;  // by name
  for (const KernelTemplate& kernel : library) {
    const auto [known, is_new] = files.emplace(kernel.contract.name, kernel.file);
    if (!is_new) {
      throw TemplateError(
          kernel.file, 1, 1,
          fmt::format("the name '{}' is taken by '{}'", known->first, known->second));
    }
  }
  return library;
}

}  // namespace stof::fusion
