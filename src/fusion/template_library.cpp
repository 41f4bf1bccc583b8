#include "fusion/template_library.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/parallel.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

// Throws TemplateError where one replaces what is not there. What it replaces takes the problems
// that it does not, unless they have one name.
void leave_out_namesakes(TemplateLibrary& library) {
  std::set<std::string> replaced;  // files
  for (const KernelTemplate& kernel : library) {
    const std::string& name = kernel.contract.replaces;
    const auto found = std::ranges::find_if(library, [&](const KernelTemplate& other) {
      return &other != &kernel && other.contract.name == name;
    });
    if (!name.empty() && found == library.end()) {
      throw TemplateError(
          kernel.file, 1, 1,
          fmt::format("it replaces '{}', and no template that ships has that name", name));
    }
    if (!name.empty() && name == kernel.contract.name) {
      replaced.insert(found->file);
    }
  }
  std::erase_if(library,
                [&](const KernelTemplate& kernel) { return replaced.contains(kernel.file); });
}

}  // namespace

TemplateLibrary read_templates(const std::map<std::string, std::string>& texts) {
  std::vector<const std::pair<const std::string, std::string>*> with_contract;
  for (const auto& text : texts) {
    if (contract::has_contract(text.second)) {
      with_contract.push_back(&text);
    }
  }
  TemplateLibrary library(with_contract.size());
  base::parallel_for(std::ssize(library), [&](std::int64_t i) {
    const auto& [file, text] = *with_contract[static_cast<std::size_t>(i)];
    library[static_cast<std::size_t>(i)] = {.file = file,
                                            .contract = contract::parse_contract(file, text)};
  });
  leave_out_namesakes(library);
  std::map<std::string, std::string> files;  // by name
  for (const KernelTemplate& kernel : library) {
    const auto [known, is_new] = files.emplace(kernel.contract.name, kernel.file);
    if (!is_new) {
      throw TemplateError(
          kernel.file, 1, 1,
          fmt::format("the name '{}' is that of '{}' too", known->first, known->second));
    }
  }
  return library;
}

}  // namespace stof::fusion
