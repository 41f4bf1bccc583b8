#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compile/compiled_kernel.hpp"
#include "stof/error.hpp"

namespace stof::compile {

// One message of the log, before it is led back to a template.
struct LogMessage {
  CompileMessage message;  // its file and line as the front end gives them; none from ptxas
  int ptx_line = 0;        // the line of the PTX that ptxas is about, from 1; 0 without one
};

struct ParsedLog {
  std::vector<FunctionResources> functions;
  std::vector<LogMessage> messages;
};

// Reads what NVRTC 13.0 and its ptxas -v write. Lines that it does not know are skipped.
ParsedLog parse_log(std::string_view log);

}  // namespace stof::compile
