#include "cuda/nvrtc.hpp"

#include <memory>
#include <type_traits>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/device.hpp"
#include "stof/error.hpp"

namespace stof::cuda {

namespace {

NvrtcFunctions load_functions(const SharedLibrary& library) {
  NvrtcFunctions table = {};
  const auto load = [&library](auto& function, const char* name) {
    using Function = std::remove_pointer_t<std::remove_reference_t<decltype(function)>>;
    function = library.function<Function>(name);
  };
  load(table.version, "nvrtcVersion");
  load(table.error_string, "nvrtcGetErrorString");
  load(table.create_program, "nvrtcCreateProgram");
  load(table.destroy_program, "nvrtcDestroyProgram");
  load(table.compile_program, "nvrtcCompileProgram");
  load(table.set_flow_callback, "nvrtcSetFlowCallback");
  load(table.add_name_expression, "nvrtcAddNameExpression");
  load(table.lowered_name, "nvrtcGetLoweredName");
  load(table.log_size, "nvrtcGetProgramLogSize");
  load(table.log, "nvrtcGetProgramLog");
  load(table.ptx_size, "nvrtcGetPTXSize");
  load(table.ptx, "nvrtcGetPTX");
  load(table.cubin_size, "nvrtcGetCUBINSize");
  load(table.cubin, "nvrtcGetCUBIN");
  return table;
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) {
    pointers.push_back(text.c_str());
  }
  return pointers;
}

// NVRTC asks this now and then while it compiles; 1 stops it.
extern "C" int stof_nvrtc_flow(void* stop_token, void* /*reserved*/) {
  return static_cast<const std::stop_token*>(stop_token)->stop_requested() ? 1 : 0;
}

// One program between its creation and its end.
class Session {
 public:
  Session(const NvrtcFunctions& functions, const NvrtcProgram& program) : functions_(functions) {
    std::vector<const char*> names;
    std::vector<const char*> texts;
    for (const NvrtcHeader* header : program.headers) {
      names.push_back(header->name.c_str());
      texts.push_back(header->text.c_str());
    }
    const std::string source(program.source);  // ends in NUL
    check(functions_.create_program(&handle_, source.c_str(), program.name.c_str(),
                                    static_cast<int>(names.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~Session() { functions_.destroy_program(&handle_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  NvrtcResult compile(const NvrtcProgram& program, std::stop_token stop) {
    for (const std::string& expression : program.name_expressions) {
      check(functions_.add_name_expression(handle_, expression.c_str()), "nvrtcAddNameExpression");
    }
    if (stop.stop_possible()) {
      check(functions_.set_flow_callback(handle_, stof_nvrtc_flow, &stop), "nvrtcSetFlowCallback");
    }
    const std::vector<const char*> options = pointers(program.options);
    const nvrtcResult code =
        functions_.compile_program(handle_, static_cast<int>(options.size()), options.data());
    NvrtcResult result;
    result.status = status(code);
    result.log = log();
    if (result.status != NvrtcStatus::Success && result.status != NvrtcStatus::Failed) {
      return result;
    }
    result.ptx = text(functions_.ptx_size, functions_.ptx, "nvrtcGetPTX");
    if (result.status == NvrtcStatus::Success) {
      result.cubin = cubin();
      result.lowered_names = lowered_names(program.name_expressions);
    }
    return result;
  }

 private:
  void check(nvrtcResult code, const char* call) const {
    if (code != NVRTC_SUCCESS) {
      throw CudaError(cudaErrorUnknown,
                      fmt::format("nvrtc: {} in {}", functions_.error_string(code), call));
    }
  }

  // Which codes are about the program, not about NVRTC.
  NvrtcStatus status(nvrtcResult code) const {
    switch (code) {
      case NVRTC_SUCCESS:
        return NvrtcStatus::Success;
      case NVRTC_ERROR_COMPILATION:
        return NvrtcStatus::Failed;
      case NVRTC_ERROR_INVALID_OPTION:
        return NvrtcStatus::InvalidOption;
      case NVRTC_ERROR_CANCELLED:
        return NvrtcStatus::Cancelled;
      default:
        throw CudaError(cudaErrorUnknown, fmt::format("nvrtc: {} in nvrtcCompileProgram: {}",
                                                      functions_.error_string(code), log()));
    }
  }

  // A text of the program, without the NUL that its size counts.
  std::string text(nvrtcResult (*get_size)(nvrtcProgram, std::size_t*),
                   nvrtcResult (*get)(nvrtcProgram, char*), const char* call) const {
    std::size_t size = 0;
    check(get_size(handle_, &size), call);
    std::string text(size, '\0');
    if (size > 0) {
      check(get(handle_, text.data()), call);
      text.pop_back();
    }
    return text;
  }

  // What ptxas says comes with NULs of its own in it.
  std::string log() const {
    std::string log = text(functions_.log_size, functions_.log, "nvrtcGetProgramLog");
    std::erase(log, '\0');
    return log;
  }

  std::vector<std::byte> cubin() const {
    std::size_t size = 0;
    check(functions_.cubin_size(handle_, &size), "nvrtcGetCUBINSize");
    std::vector<std::byte> cubin(size);
    if (size > 0) {
      check(functions_.cubin(handle_, reinterpret_cast<char*>(cubin.data())), "nvrtcGetCUBIN");
    }
    return cubin;
  }

  std::vector<std::string> lowered_names(const std::vector<std::string>& expressions) const {
    std::vector<std::string> names;
    for (const std::string& expression : expressions) {
      const char* name = nullptr;
      check(functions_.lowered_name(handle_, expression.c_str(), &name), "nvrtcGetLoweredName");
      names.emplace_back(name);
    }
    return names;
  }

  const NvrtcFunctions& functions_;
  nvrtcProgram handle_ = nullptr;
};

}  // namespace

Nvrtc::Nvrtc(const NvrtcFiles& files)
    : files_(files), library_(files.library), functions_(load_functions(library_)) {
  int major = 0;
  int minor = 0;
  if (functions_.version(&major, &minor) != NVRTC_SUCCESS) {
    throw CudaError(cudaErrorUnknown, "nvrtc: nvrtcVersion fails");
  }
  version_ = 1000 * major + 10 * minor;
  // libnvrtc opens its builtins by bare name, with no folder to look in. It finds them where a
  // library of that name is in the process already, so they are opened here, by their path.
  const std::string soname = fmt::format("libnvrtc-builtins.so.{}", version_text(version_));
  files_.builtins.replace_filename(soname);
  const SharedLibrary builtins(files_.builtins);
}

NvrtcResult Nvrtc::compile(const NvrtcProgram& program, const std::stop_token& stop) const {
  if (stop.stop_requested()) {
    NvrtcResult cancelled;
    cancelled.status = NvrtcStatus::Cancelled;
    return cancelled;
  }
  return Session(functions_, program).compile(program, stop);
}

}  // namespace stof::cuda
