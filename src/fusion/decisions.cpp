#include "fusion/decisions.hpp"

namespace stof::fusion {

std::string problem_key(const nlohmann::json& problem) {
  return problem.dump();
}

const Setting* Decisions::find(const nlohmann::json& problem) const {
  if (settings.empty()) {
    return nullptr;
  }
  const auto found = settings.find(problem_key(problem));
  return found == settings.end() ? nullptr : &found->second;
}

}  // namespace stof::fusion
