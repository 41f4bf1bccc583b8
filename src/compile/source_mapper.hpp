#pragma once

#include <string_view>
#include <vector>

#include "compile/log_parser.hpp"
#include "kernel/kernel_source.hpp"
#include "stof/error.hpp"

namespace stof::compile {

// What the front end calls the rendered text. One name for all kernels, since it can be in the
// cubin.
inline constexpr std::string_view kProgramName = "kernel.cu";

// Leads a message of the front end from the rendered text back to its template. One about another
// file keeps file and line.
CompileMessage map_front_end_message(CompileMessage message, const kernel::LineMap& lines);

// Leads a message of ptxas back to its template. The PTX is that of a compile with -lineinfo, and
// the message came with that PTX.
CompileMessage map_ptxas_message(const LogMessage& message, std::string_view ptx,
                                 const kernel::LineMap& lines);

}  // namespace stof::compile
