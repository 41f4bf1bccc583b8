#pragma once

#include <stdexcept>
#include <string>
#include <utility>

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
