#include "compile/source_mapper.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace stof::compile;  // NOLINT(google-build-using-namespace)
using stof::CompileMessage;
using stof::kernel::LineMap;

namespace {

// Rendered lines 1 to 3 are lines 11 to 13 of a.jinja, 4 and 5 both line 7 of b.jinja.
LineMap line_map() {
  LineMap lines;
  lines.files = {"a.jinja", "b.jinja"};
  lines.runs = {{.rendered_line = 1, .file = 0, .template_line = 11, .step = 1},
                {.rendered_line = 4, .file = 1, .template_line = 7, .step = 0}};
  return lines;
}

CompileMessage message_at(const std::string& file, int line) {
  CompileMessage message;
  message.text = "text";
  message.file = file;
  message.line = line;
  return message;
}

constexpr const char* kPtx =
    ".visible .entry k(\n"
    "{\n"
    "\t.loc\t1 2 0\n"
    "\tmov.u32 %r1, 1;\n"
    "\t.loc\t1 3 3, function_name $L__info_string0, inlined_at 1 5 3\n"
    "\twgmma.fence.sync.aligned;\n"
    "\t.loc\t2 40 1\n"
    "\tcvt.f32.f16 %f1, %h1;\n"
    "}\n"
    "\t.file\t1 \"/some/folder/kernel.cu\"\n"
    "\t.file\t2 \"/some/folder/cuda_fp16.h\"\n";

CompileMessage map_line(int ptx_line) {
  const LogMessage message = {.message = message_at("", 0), .ptx_line = ptx_line};
  return map_ptxas_message(message, kPtx, line_map());
}

}  // namespace

TEST_CASE("lines of the rendered text become lines of templates") {
  const CompileMessage first = map_front_end_message(message_at("kernel.cu", 2), line_map());
  CHECK(first.file == "a.jinja");
  CHECK(first.line == 12);
  const CompileMessage second = map_front_end_message(message_at("kernel.cu", 5), line_map());
  CHECK(second.file == "b.jinja");
  CHECK(second.line == 7);
}

TEST_CASE("lines of other files, or of a text without a map, stay") {
  const CompileMessage header = map_front_end_message(message_at("cuda_fp16.h", 2), line_map());
  CHECK(header.file == "cuda_fp16.h");
  CHECK(header.line == 2);
  const CompileMessage unmapped = map_front_end_message(message_at("kernel.cu", 2), {});
  CHECK(unmapped.file == "kernel.cu");
  CHECK(unmapped.line == 2);
}

TEST_CASE("what led there is mapped too") {
  CompileMessage message = message_at("kernel.cu", 1);
  message.notes = {"instantiation of \"f<4>\" at line 3", "instantiation of \"g\" at line 9 of x.h",
                   "something at line of no number", "nothing"};
  CHECK(map_front_end_message(message, line_map()).notes ==
        std::vector<std::string>{"instantiation of \"f<4>\" at a.jinja:13",
                                 "instantiation of \"g\" at x.h:9",
                                 "something at line of no number", "nothing"});
}

TEST_CASE("a line of the PTX belongs to the nearest location above it") {
  const CompileMessage plain = map_line(4);
  CHECK(plain.file == "a.jinja");
  CHECK(plain.line == 12);
  CHECK(plain.notes == std::vector<std::string>{"PTX: mov.u32 %r1, 1;"});
}

TEST_CASE("an inlined function is the place, and its caller what led there") {
  const CompileMessage inlined = map_line(6);
  CHECK(inlined.file == "a.jinja");
  CHECK(inlined.line == 13);
  CHECK(inlined.notes ==
        std::vector<std::string>{"called from b.jinja:7", "PTX: wgmma.fence.sync.aligned;"});
}

TEST_CASE("a place in a CUDA header keeps its name, without the folder") {
  const CompileMessage header = map_line(8);
  CHECK(header.file == "cuda_fp16.h");
  CHECK(header.line == 40);
}

TEST_CASE("a line that is not there, or has nothing above it, maps to nothing") {
  CHECK(map_line(1).file.empty());
  CHECK(map_line(0).line == 0);
  CHECK(map_line(-5).line == 0);
  CHECK(map_line(1000).notes.empty());
  CHECK(map_ptxas_message({.message = message_at("", 0), .ptx_line = 3}, "", {}).file.empty());
}
