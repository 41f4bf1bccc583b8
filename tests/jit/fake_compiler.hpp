#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "compile/compiler.hpp"

namespace stof::test {

inline compile::CompileTask make_task(const std::string& source) {
  return {.source = {.text = source, .lines = {.files = {source + ".jinja"}, .runs = {}}},
          .target = base::parse_gpu_target("sm_90a")};
}

// What a compiler would make of a source: bytes that tell it.
inline std::string cubin_of(const std::string& source) {
  return "cubin of " + source;
}

inline std::string text_of(const compile::CompiledKernel& kernel) {
  return {reinterpret_cast<const char*>(kernel.cubin.data()), kernel.cubin.size()};
}

// Counts its compiles, and does in each what a test wants.
class FakeCompiler : public compile::Compiler {
 public:
  using OnCompile = std::function<void(const std::string& source, const std::stop_token& stop)>;

  explicit FakeCompiler(OnCompile on_compile = {}, std::string build = "fake 1")
      : on_compile_(std::move(on_compile)), build_(std::move(build)) {}

  int count() const { return count_; }

  compile::CompileInputs inputs(const compile::CompileTask& task) const override {
    return {.options = {"-arch=" + task.target.text()}, .headers = {}, .compiler = build_};
  }

  compile::CompiledKernel compile(const compile::CompileTask& task,
                                  std::stop_token stop) const override {
    ++count_;
    if (on_compile_) {
      on_compile_(task.source.text, stop);
    }
    compile::CompiledKernel kernel;
    for (const char c : cubin_of(task.source.text)) {
      kernel.cubin.push_back(static_cast<std::byte>(c));
    }
    kernel.functions.push_back({.name = "kernel", .is_entry = true, .registers = 32});
    kernel.compile_ms = 1.5;
    return kernel;
  }

 private:
  OnCompile on_compile_;
  std::string build_;
  mutable std::atomic<int> count_ = 0;
};

}  // namespace stof::test
