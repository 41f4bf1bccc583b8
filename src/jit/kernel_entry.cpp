#include "jit/kernel_entry.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/check.hpp"

namespace stof::jit {

using compile::CompiledKernel;
using compile::FunctionResources;
using nlohmann::json;

namespace {

constexpr std::array<const char*, 3> kSeverities = {"info", "warning", "error"};

json to_json(const FunctionResources& function) {
  return {{"name", function.name},
          {"is_entry", function.is_entry},
          {"registers", function.registers},
          {"barriers", function.barriers},
          {"shared_bytes", function.shared_bytes},
          {"stack_bytes", function.stack_bytes},
          {"spill_store_bytes", function.spill_store_bytes},
          {"spill_load_bytes", function.spill_load_bytes}};
}

FunctionResources function_from(const json& value) {
  return {.name = value.at("name").get<std::string>(),
          .is_entry = value.at("is_entry").get<bool>(),
          .registers = value.at("registers").get<std::int64_t>(),
          .barriers = value.at("barriers").get<std::int64_t>(),
          .shared_bytes = value.at("shared_bytes").get<std::int64_t>(),
          .stack_bytes = value.at("stack_bytes").get<std::int64_t>(),
          .spill_store_bytes = value.at("spill_store_bytes").get<std::int64_t>(),
          .spill_load_bytes = value.at("spill_load_bytes").get<std::int64_t>()};
}

json to_json(const CompileMessage& message) {
  return {{"severity", kSeverities.at(static_cast<std::size_t>(message.severity))},
          {"code", message.code},
          {"text", message.text},
          {"file", message.file},
          {"line", message.line},
          {"notes", message.notes}};
}

CompileMessage message_from(const json& value) {
  const auto severity = value.at("severity").get<std::string>();
  CompileMessage message;
  for (std::size_t i = 0; i < kSeverities.size(); ++i) {
    if (severity == kSeverities[i]) {
      message.severity = static_cast<CompileMessage::Severity>(i);
    }
  }
  message.code = value.at("code").get<std::string>();
  message.text = value.at("text").get<std::string>();
  message.file = value.at("file").get<std::string>();
  message.line = value.at("line").get<int>();
  message.notes = value.at("notes").get<std::vector<std::string>>();
  return message;
}

CompiledKernel kernel_from(const json& meta, std::string_view cubin) {
  CompiledKernel kernel;
  const auto bytes = std::as_bytes(std::span(cubin));
  kernel.cubin.assign(bytes.begin(), bytes.end());
  for (const json& function : meta.at("functions")) {
    kernel.functions.push_back(function_from(function));
  }
  for (const json& message : meta.at("messages")) {
    kernel.messages.push_back(message_from(message));
  }
  kernel.lowered_names = meta.at("lowered_names").get<std::vector<std::string>>();
  kernel.compile_ms = meta.at("compile_ms").get<double>();
  return kernel;
}

}  // namespace

cache::Entry to_entry(const kernel::Key& key, const CompiledKernel& kernel) {
  json meta = {{"functions", json::array()},
               {"messages", json::array()},
               {"lowered_names", kernel.lowered_names},
               {"compile_ms", kernel.compile_ms}};
  for (const FunctionResources& function : kernel.functions) {
    meta["functions"].push_back(to_json(function));
  }
  for (const CompileMessage& message : kernel.messages) {
    meta["messages"].push_back(to_json(message));
  }
  // A message may quote a source that is no UTF-8.
  const std::string text = meta.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string_view cubin(reinterpret_cast<const char*>(kernel.cubin.data()),
                               kernel.cubin.size());
  return {cache::EntryKind::Kernel, key, {.payload = cubin, .meta = text}};
}

std::optional<CompiledKernel> from_entry(const cache::Entry& entry) {
  try {
    return kernel_from(json::parse(entry.meta()), entry.payload());
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace stof::jit
