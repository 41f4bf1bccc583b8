#include "compile/log_parser.hpp"

#include <string>

#include <doctest/doctest.h>

#include "stof/error.hpp"

using namespace stof::compile;  // NOLINT(google-build-using-namespace)
using stof::CompileMessage;
using Severity = CompileMessage::Severity;

namespace {

CompileMessage only_message(const std::string& log) {
  const ParsedLog parsed = parse_log(log);
  REQUIRE(parsed.messages.size() == 1);
  return parsed.messages[0].message;
}

// Everything that a log can hold, as NVRTC 13.0 writes it.
constexpr const char* kLog =
    R"(kernel.cu(4): error: class "T<4>" has no member "nothing"
    return t.nothing; }
             ^
          detected during:
            instantiation of class "T<N> [with N=4]" at line 3
            instantiation of "int g<N>(int *) [with N=4]" at line 6 of a.cuh

kernel.cu(2): warning #177-D: variable "unused" was declared but never referenced
  int unused; int far_away(1): error: this is source text, and no message
      ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

2 errors detected in the compilation of "kernel.cu".
ptxas warning : Local memory used for function 'first', size of stack frame: 64 bytes
ptxas info    : (C7517) warpgroup.wait is injected in around line 259 by compiler to allow use of registers defined by GMMA in function 'first'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'second' for 'sm_80'
ptxas info    : Function properties for second
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 128 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 6.292 ms
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
ptxas         .     64 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 64 bytes cumulative stack size
ptxas info    : Compile time = 1.886 ms
ptxas info    : Function properties for _Z1ffi
ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas application ptx input, line 27; error   : Unknown symbol 'such'
ptxas fatal   : Ptx assembly aborted due to errors
)";

}  // namespace

TEST_CASE("resources are read by unit, entry points in the order of the source") {
  const ParsedLog parsed = parse_log(kLog);
  REQUIRE(parsed.functions.size() == 3);
  CHECK(parsed.functions[0] == FunctionResources{.name = "first",
                                                 .is_entry = true,
                                                 .registers = 255,
                                                 .barriers = 0,
                                                 .shared_bytes = 0,
                                                 .stack_bytes = 64,
                                                 .spill_store_bytes = 12,
                                                 .spill_load_bytes = 16});
  CHECK(parsed.functions[1] == FunctionResources{.name = "_Z1ffi", .stack_bytes = 8});
  CHECK(
      parsed.functions[2] ==
      FunctionResources{
          .name = "second", .is_entry = true, .registers = 10, .barriers = 1, .shared_bytes = 128});
}

TEST_CASE("messages are read with file, line, code and what led there") {
  const ParsedLog parsed = parse_log(kLog);
  REQUIRE(parsed.messages.size() == 5);
  const CompileMessage& error = parsed.messages[0].message;
  CHECK(error.severity == Severity::Error);
  CHECK(error.file == "kernel.cu");
  CHECK(error.line == 4);
  CHECK(error.text == "class \"T<4>\" has no member \"nothing\"");
  CHECK(error.notes == std::vector<std::string>{
                           "instantiation of class \"T<N> [with N=4]\" at line 3",
                           "instantiation of \"int g<N>(int *) [with N=4]\" at line 6 of a.cuh"});
  const CompileMessage& warning = parsed.messages[1].message;
  CHECK(warning.severity == Severity::Warning);
  CHECK(warning.code == "177-D");
  CHECK(warning.text == "variable \"unused\" was declared but never referenced");
  CHECK(warning.notes.empty());
  CHECK(parsed.messages[2].message.text ==
        "Local memory used for function 'first', size of stack frame: 64 bytes");
  CHECK(parsed.messages[2].message.severity == Severity::Warning);
  CHECK(parsed.messages[3].message.code == "C7517");
  CHECK(parsed.messages[3].message.severity == Severity::Info);
  CHECK(parsed.messages[3].ptx_line == 259);
  CHECK(parsed.messages[4].message.text == "Unknown symbol 'such'");
  CHECK(parsed.messages[4].message.severity == Severity::Error);
  CHECK(parsed.messages[4].ptx_line == 27);
}

TEST_CASE("errors of other forms are read") {
  const CompileMessage missing = only_message(
      "a (1).cuh(7): catastrophic error: could not open source file \"x.h\"\n"
      "  #include \"x.h\"\n");
  CHECK(missing.file == "a (1).cuh");
  CHECK(missing.line == 7);
  CHECK(only_message("k.cu(3): internal error: assertion failed").severity == Severity::Error);
  const CompileMessage option = only_message("nvrtc: error: unrecognized option -O3 found\n");
  CHECK(option.text == "unrecognized option -O3 found");
  CHECK(option.file.empty());
  CHECK(only_message("ptxas fatal   : Unresolved extern function 'g'").text ==
        "Unresolved extern function 'g'");
}

TEST_CASE("what costs speed is a message whatever its number") {
  const std::string serialised =
      "Potential Performance Loss: wgmma.mma_async instructions are serialized due to program "
      "dependence on compiler-inserted WG.DP in divergent path in the function 'k'";
  const CompileMessage unnumbered = only_message("ptxas info    : " + serialised + "\n");
  CHECK(unnumbered.text == serialised);
  CHECK(is_performance_loss(unnumbered));
  const CompileMessage numbered = only_message("ptxas info    : (C7520) " + serialised + "\n");
  CHECK(numbered.code == "C7520");
  CHECK(numbered.text == serialised);
  CHECK(is_performance_loss(numbered));
  CHECK_FALSE(is_injected_wait(numbered));
}

TEST_CASE("an error of ptxas about too few registers has the line of the PTX in its text") {
  const ParsedLog parsed = parse_log(
      "ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 167 in "
      "function regs. Try to compile with register target of 154 or higher.");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].message.code == "C7602");
  CHECK(parsed.messages[0].message.severity == Severity::Error);
  CHECK(parsed.messages[0].ptx_line == 167);
}

TEST_CASE("an empty log says nothing") {
  CHECK(parse_log("").messages.empty());
  CHECK(parse_log("\n\n").functions.empty());
}

TEST_CASE("a log that is cut or changed anywhere is read as far as it goes") {
  const std::string log = kLog;
  for (std::size_t size = 0; size < log.size(); ++size) {
    const std::string cut(log, 0, size);
    CHECK(parse_log(cut).functions.size() <= 3);
    std::string changed = log;
    changed[size] = '\'';
    CHECK_NOTHROW(parse_log(changed));
    changed[size] = '9';
    CHECK_NOTHROW(parse_log(changed));
  }
}
