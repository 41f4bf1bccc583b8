#include "compile/compiled_kernel.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace stof::compile;  // NOLINT(google-build-using-namespace)
using stof::CompileMessage;

namespace {

CompileMessage info(const std::string& code, const std::string& text) {
  CompileMessage message;
  message.severity = CompileMessage::Severity::Info;
  message.code = code;
  message.text = text;
  return message;
}

}  // namespace

TEST_CASE("an entry point is found by name, a function that it calls is none") {
  CompiledKernel kernel;
  kernel.functions = {{.name = "k", .is_entry = true, .registers = 32}, {.name = "callee"}};
  CHECK(kernel.entry("k").registers == 32);
  CHECK_THROWS_AS(kernel.entry("callee"), stof::InternalError);
}

TEST_CASE("a good kernel has no faults, whatever it warns of") {
  CompiledKernel kernel;
  kernel.functions = {{.name = "k", .is_entry = true, .registers = 255, .barriers = 4}};
  kernel.messages = {info("177-D", "variable is never referenced")};
  CHECK(quality_faults(kernel).empty());
}

TEST_CASE("spills, stack frames, lost speed and injected waits are faults") {
  CompiledKernel kernel;
  kernel.functions = {{.name = "k",
                       .is_entry = true,
                       .stack_bytes = 16,
                       .spill_store_bytes = 4,
                       .spill_load_bytes = 8}};
  kernel.messages = {info("C7510", "Potential Performance Loss: serialized"),
                     info("C7517", "warpgroup.wait is injected")};
  CHECK(quality_faults(kernel) ==
        std::vector<std::string>{"k spills 4 bytes and loads 8 back",
                                 "k has a stack frame of 16 bytes",
                                 "info C7510: Potential Performance Loss: serialized",
                                 "info C7517: warpgroup.wait is injected"});
}
