#pragma once

#include <string>

#include "stof/error.hpp"

namespace stof::test {

// What the error says that the call throws; "no error" where it throws none.
template <typename Error = GraphError, typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace stof::test
