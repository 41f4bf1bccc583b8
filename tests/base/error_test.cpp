#include "stof/error.hpp"

#include <string>

#include <doctest/doctest.h>

using stof::CompileError;
using stof::CompileMessage;

namespace {

CompileMessage message(CompileMessage::Severity severity, const std::string& text) {
  CompileMessage message;
  message.severity = severity;
  message.text = text;
  return message;
}

}  // namespace

TEST_CASE("a message of the compiler reads as compilers write them") {
  CompileMessage error = message(CompileMessage::Severity::Error, "identifier is undefined");
  CHECK(error.str() == "error: identifier is undefined");
  error.file = "a.jinja";
  CHECK(error.str() == "a.jinja: error: identifier is undefined");
  error.line = 12;
  error.notes = {"called from b.jinja:3"};
  CHECK(error.str() == "a.jinja:12: error: identifier is undefined\n  called from b.jinja:3");
  CompileMessage warning = message(CompileMessage::Severity::Warning, "is never used");
  warning.code = "177-D";
  CHECK(warning.str() == "warning 177-D: is never used");
}

TEST_CASE("a compile error lists its errors, not its warnings, and carries log and source") {
  const CompileError error("kernel for sm_90a", "log", "source",
                           {message(CompileMessage::Severity::Warning, "w"),
                            message(CompileMessage::Severity::Error, "e")});
  CHECK(std::string(error.what()) == "compile: kernel for sm_90a has 1 error\nerror: e");
  CHECK(error.log() == "log");
  CHECK(error.source() == "source");
  CHECK(error.messages().size() == 2);
}

TEST_CASE("a long list of errors is cut") {
  const std::vector<CompileMessage> messages(100, message(CompileMessage::Severity::Error, "e"));
  const std::string what = CompileError("kernel", "", "", messages).what();
  CHECK(what.starts_with("compile: kernel has 100 errors\nerror: e\n"));
  CHECK(what.ends_with("\nerror: e\nand 92 more"));
}
