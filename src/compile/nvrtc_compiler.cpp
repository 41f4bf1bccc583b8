#include "compile/nvrtc_compiler.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "compile/log_parser.hpp"
#include "compile/source_mapper.hpp"
#include "cuda/nvrtc.hpp"
#include "cuda/toolkit_headers.hpp"

namespace stof::compile {

namespace {

using Headers = std::vector<const cuda::NvrtcHeader*>;

// Neither the driver's own cache nor the limits of the process are touched, and ptxas tells what
// each function takes. One ptxas option each: it does not split them.
std::vector<std::string> options_for(const base::GpuTarget& target) {
  return {"-arch=" + target.text(),
          "-std=c++17",
          "--minimal",
          "-default-device",
          "--no-cache",
          "--modify-stack-limit=false",
          "--ptxas-options=-v",
          "--ptxas-options=--warn-on-spills",
          "--ptxas-options=--warn-on-local-memory-usage"};
}

// The known headers that lines of the source include. One that it only names in a comment does no
// harm; one that is not known is the front end's to report, at its line.
std::vector<std::string> included_headers(std::string_view source) {
  constexpr std::string_view kBlank = " \t";
  std::vector<std::string> names;
  for (std::size_t at = source.find("include"); at != std::string_view::npos;
       at = source.find("include", at + 1)) {
    std::string_view rest = source.substr(at + std::string_view("include").size());
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
    if (rest.starts_with('<') || rest.starts_with('"')) {
      const std::string_view name = rest.substr(1, rest.find_first_of(">\"\n", 1) - 1);
      if (cuda::ToolkitHeaders::is_known(name)) {
        names.emplace_back(name);
      }
    }
  }
  return names;
}

cuda::NvrtcResult run(const cuda::Nvrtc& nvrtc, const CompileTask& task, const Headers& headers,
                      std::vector<std::string> options, const std::stop_token& stop) {
  cuda::NvrtcResult result = nvrtc.compile({.source = task.source.text,
                                            .name = std::string(kProgramName),
                                            .options = std::move(options),
                                            .headers = headers,
                                            .name_expressions = task.name_expressions},
                                           stop);
  if (result.status == cuda::NvrtcStatus::Cancelled) {
    throw CancelledError("compile: cancelled");
  }
  return result;
}

bool is_located_in_ptx(const LogMessage& message) {
  return message.ptx_line > 0;
}

// ptxas knows lines of the PTX alone. A second compile, with -lineinfo, says where they come from;
// its PTX has other line numbers, which its own log uses.
std::vector<CompileMessage> map_messages(const cuda::Nvrtc& nvrtc, const CompileTask& task,
                                         const Headers& headers, const ParsedLog& log,
                                         const std::stop_token& stop) {
  std::vector<CompileMessage> messages;
  for (const LogMessage& message : log.messages) {
    if (!is_located_in_ptx(message)) {
      messages.push_back(map_front_end_message(message.message, task.source.lines));
    }
  }
  if (std::ranges::any_of(log.messages, is_located_in_ptx)) {
    std::vector<std::string> options = options_for(task.target);
    options.emplace_back("-lineinfo");
    const cuda::NvrtcResult located = run(nvrtc, task, headers, std::move(options), stop);
    for (const LogMessage& message : parse_log(located.log).messages) {
      if (is_located_in_ptx(message)) {
        messages.push_back(map_ptxas_message(message, located.ptx, task.source.lines));
      }
    }
  }
  return messages;
}

[[noreturn]] void throw_compile_error(const CompileTask& task, std::string log,
                                      std::vector<CompileMessage> messages) {
  for (CompileMessage& message : messages) {
    if (message.text.starts_with("could not open source file")) {
      message.notes.emplace_back("kernels may include cuda_fp16.h and cuda_bf16.h");
    }
  }
  const auto is_error = [](const CompileMessage& message) {
    return message.severity == CompileMessage::Severity::Error;
  };
  if (std::ranges::none_of(messages, is_error)) {
    messages.emplace_back().text = log;  // it says something that the parser does not know
  }
  throw CompileError(fmt::format("kernel for {}", task.target.text()), std::move(log),
                     task.source.text, std::move(messages));
}

}  // namespace

// NVRTC and its headers, once they are wanted. What fails is tried again at the next call.
class NvrtcCompiler::Toolchain {
 public:
  explicit Toolchain(std::optional<cuda::NvrtcFiles> files) : files_(std::move(files)) {}

  cuda::NvrtcFiles files() {
    const std::scoped_lock lock(mutex_);
    return found_files();
  }

  const cuda::Nvrtc& nvrtc() {
    const std::scoped_lock lock(mutex_);
    if (!nvrtc_) {
      nvrtc_.emplace(found_files());
    }
    return *nvrtc_;
  }

  Headers headers(const CompileTask& task) {
    const std::vector<std::string> names = included_headers(task.source.text);
    const std::scoped_lock lock(mutex_);
    if (!headers_) {
      headers_.emplace(found_files().library);
    }
    return headers_->read(names);
  }

 private:
  const cuda::NvrtcFiles& found_files() {
    if (!files_) {
      files_ = cuda::find_nvrtc();
    }
    return *files_;
  }

  std::mutex mutex_;
  std::optional<cuda::NvrtcFiles> files_;
  std::optional<cuda::Nvrtc> nvrtc_;
  std::optional<cuda::ToolkitHeaders> headers_;
};

NvrtcCompiler::NvrtcCompiler() : toolchain_(std::make_unique<Toolchain>(std::nullopt)) {}

NvrtcCompiler::NvrtcCompiler(const cuda::NvrtcFiles& files)
    : toolchain_(std::make_unique<Toolchain>(files)) {}

NvrtcCompiler::~NvrtcCompiler() = default;

CompileInputs NvrtcCompiler::inputs(const CompileTask& task) const {
  CompileInputs inputs = {.options = options_for(task.target),
                          .headers = {},
                          .compiler = cuda::compiler_identity(toolchain_->files())};
  for (const cuda::NvrtcHeader* header : toolchain_->headers(task)) {
    inputs.headers.push_back({.name = header->name, .digest = header->digest});
  }
  return inputs;
}

CompiledKernel NvrtcCompiler::compile(const CompileTask& task, std::stop_token stop) const {
  const auto start = std::chrono::steady_clock::now();
  const cuda::Nvrtc& nvrtc = toolchain_->nvrtc();
  const Headers headers = toolchain_->headers(task);
  cuda::NvrtcResult result = run(nvrtc, task, headers, options_for(task.target), stop);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  ParsedLog log = parse_log(result.log);
  std::vector<CompileMessage> messages = map_messages(nvrtc, task, headers, log, stop);
  if (result.status != cuda::NvrtcStatus::Success) {
    throw_compile_error(task, std::move(result.log), std::move(messages));
  }
  STOF_CHECK(!result.cubin.empty()) << "NVRTC gives no cubin for " << task.target.text();
  return {.cubin = std::move(result.cubin),
          .functions = std::move(log.functions),
          .messages = std::move(messages),
          .lowered_names = std::move(result.lowered_names),
          .compile_ms = time.count()};
}

}  // namespace stof::compile
