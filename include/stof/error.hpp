#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stof {

// Every exception that the library throws. The type says who must act; what() names the thing, the
// value and the limit.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller must act: a graph, mask, expression, tensor or file that they gave is wrong.
class GraphError : public Error {
 public:
  using Error::Error;
};

// Expression text does not parse, or its types do not fit.
class ExpressionError : public GraphError {
 public:
  ExpressionError(int column, const std::string& message) : GraphError(message), column_(column) {}

  // Where in the text, from 1; 0 for an expression that was built in C++.
  int column() const { return column_; }

 private:
  int column_;
};

// The author of a template must act. what() is "file:line:column: message", then the line itself
// with a caret below the column.
class TemplateError : public Error {
 public:
  TemplateError(std::string file, int line, int column, const std::string& message,
                const std::string& source_line = {})
      : Error(text(file, line, column, message, source_line)),
        file_(std::move(file)),
        line_(line),
        column_(column) {}

  const std::string& file() const { return file_; }
  int line() const { return line_; }      // from 1
  int column() const { return column_; }  // from 1

 private:
  static std::string text(const std::string& file, int line, int column, const std::string& message,
                          const std::string& source_line);

  std::string file_;
  int line_;
  int column_;
};

// One thing that the CUDA compiler said, led back to the template that it is about.
struct CompileMessage {
  enum class Severity : std::uint8_t { Info, Warning, Error };

  Severity severity = Severity::Error;
  std::string code;  // "C7510", "177-D"; empty where the compiler gives none
  std::string text;
  std::string file;                // the template, or a CUDA header; empty where it is not known
  int line = 0;                    // from 1, in file; 0 where it is not known
  std::vector<std::string> notes;  // what led there: "instantiation of … at a.jinja:3"

  std::string str() const;  // "a.jinja:12: error: …", then the notes on lines of their own

  friend bool operator==(const CompileMessage&, const CompileMessage&) = default;
};

// The author of a template must act: rendered CUDA does not compile. what() lists the errors.
class CompileError : public Error {
 public:
  // summary says what was compiled: "kernel for sm_90a".
  CompileError(const std::string& summary, std::string log, std::string source,
               std::vector<CompileMessage> messages);

  const std::string& log() const { return log_; }        // as the compiler wrote it
  const std::string& source() const { return source_; }  // as rendered
  const std::vector<CompileMessage>& messages() const { return messages_; }

 private:
  std::string log_;
  std::string source_;
  std::vector<CompileMessage> messages_;
};

// Nobody must act: the stop token that the caller gave was used.
class CancelledError : public Error {
 public:
  using Error::Error;
};

// The caller must act: fill the cache, or allow to compile what is not in it. A cache that is
// damaged or cannot be written is no error.
class CacheError : public Error {
 public:
  using Error::Error;
};

// The machine must change: its driver, its GPU or the CUDA runtime refused a call.
class CudaError : public Error {
 public:
  CudaError(int code, const std::string& message) : Error(message), code_(code) {}

  // The cudaError_t of the call.
  int code() const { return code_; }

 private:
  int code_;
};

// The library must change: something that it relies on does not hold.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace stof
