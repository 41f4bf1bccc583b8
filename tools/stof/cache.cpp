// stof cache: what lies in the cache.
#include "cache/cache.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "cache/inventory.hpp"
#include "command.hpp"

namespace stof::command {

namespace {

using cache::EntryKind;
using cache::InventoryItem;

constexpr const char* kCacheExamples = R"(Examples:
  stof cache path
  stof cache ls --json
  stof cache verify --cache-dir app/cache
  stof cache explain 3f0a)";

// What the fields of a key are, as cache/README.md numbers them.
constexpr std::array kKernelFields = {"schema", "source",          "header name",  "header digest",
                                      "option", "name expression", "architecture", "compiler"};
constexpr std::array kRenderingFields = {"schema",    "version",      "template", "variables",
                                         "templates", "architecture", "option",   "compiler"};
constexpr std::array kPlanFields = {"schema",  "version",       "graph",    "templates",
                                    "profile", "norm deferral", "operators"};
constexpr std::array kVerdictFields = {"schema", "version",      "template",
                                       "files",  "architecture", "ladder"};

// What lies there. A folder that was named and is none would pass for an empty cache.
std::vector<InventoryItem> entries(const CacheOptions& cache) {
  if (cache.directory && !std::filesystem::is_directory(*cache.directory)) {
    throw GraphError(fmt::format("cache: there is no folder {}", cache.directory->string()));
  }
  return cache::list_entries(cache.path());
}

std::string field_name(EntryKind kind, std::uint16_t tag) {
  const std::span<const char* const> fields =
      kind == EntryKind::Kernel      ? std::span<const char* const>(kKernelFields)
      : kind == EntryKind::Plan      ? std::span<const char* const>(kPlanFields)
      : kind == EntryKind::Rendering ? std::span<const char* const>(kRenderingFields)
      : kind == EntryKind::Verdict   ? std::span<const char* const>(kVerdictFields)
                                     : std::span<const char* const>();
  const std::size_t n = std::size_t{tag} - 1;
  return tag == 0 || n >= fields.size() ? fmt::format("field {}", tag) : fields[n];
}

struct CacheCommand {
  CacheOptions cache;
  std::string digest;
  bool is_json = false;
};

std::size_t tuning_records(const std::filesystem::path& directory) {
  if (!std::filesystem::is_directory(directory)) {
    return 0;
  }
  cache::CacheOptions options;
  options.directory = directory;
  return cache::Cache(std::move(options)).tuning().all().size();
}

void list(const CacheCommand& command) {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const InventoryItem& item : entries(command.cache)) {
    if (command.is_json) {
      items.push_back({{"kind", cache::name(item.kind)},
                       {"digest", item.digest},
                       {"size_bytes", item.size_bytes},
                       {"path", item.path.string()}});
    } else {
      print(fmt::format("{:<9} {} {:>9}", cache::name(item.kind), item.digest, item.size_bytes));
    }
  }
  const std::size_t records = tuning_records(command.cache.path());
  if (command.is_json) {
    if (records > 0) {
      items.push_back({{"kind", "tuning"}, {"records", records}});
    }
    print_json(items);
  } else if (records > 0) {
    print(fmt::format("tuning    {} records, `stof tune --export FILE` writes them", records));
  }
}

void verify(const CacheCommand& command) {
  const std::vector<InventoryItem> items = entries(command.cache);
  nlohmann::ordered_json damaged = nlohmann::ordered_json::array();
  for (const InventoryItem& item : items) {
    if (const std::optional<std::string> fault = cache::entry_fault(item)) {
      damaged.push_back({{"path", item.path.string()}, {"fault", *fault}});
      if (!command.is_json) {
        print(fmt::format("{}: {}", item.path.string(), *fault));
      }
    }
  }
  if (command.is_json) {
    print_json({{"entries", items.size()}, {"damaged", damaged}});
  } else {
    print(fmt::format("{} entries, {} damaged", items.size(), damaged.size()));
  }
  if (!damaged.empty()) {
    throw Failed{BadInput};
  }
}

// The one entry whose digest begins like that.
InventoryItem find(const CacheCommand& command) {
  std::vector<InventoryItem> items = entries(command.cache);
  std::erase_if(
      items, [&](const InventoryItem& item) { return !item.digest.starts_with(command.digest); });
  if (items.size() != 1) {
    throw GraphError(fmt::format("cache: {} entries begin with '{}'",
                                 items.empty() ? "no" : std::to_string(items.size()),
                                 command.digest));
  }
  return items.front();
}

void explain(const CacheCommand& command) {
  const InventoryItem item = find(command);
  const cache::Entry entry = cache::read_entry(item);
  nlohmann::ordered_json fields = nlohmann::ordered_json::array();
  std::string text =
      fmt::format("{} {}, {} bytes\n", cache::name(item.kind), item.digest, entry.bytes().size());
  for (const cache::KeyField& field : cache::key_fields(entry.key_material())) {
    const std::string name = field_name(item.kind, field.tag);
    fields.push_back({{"field", name}, {"bytes", field.bytes}});
    const bool is_long = field.bytes.find('\n') != std::string_view::npos;
    text += is_long ? fmt::format("  {}: {} bytes\n", name, field.bytes.size())
                    : fmt::format("  {}: {}\n", name, field.bytes);
  }
  if (item.kind == EntryKind::Rendering) {
    text += fmt::format("  leads to kernel {}\n", entry.payload());
  } else if (item.kind == EntryKind::Plan || item.kind == EntryKind::Verdict) {
    text += fmt::format("  says {}\n", entry.payload());
  } else {
    text += fmt::format("  holds {} bytes\n", entry.payload().size());
  }
  if (!entry.meta().empty()) {
    text += fmt::format("  {}\n", entry.meta());
  }
  if (!entry.log().empty()) {
    text += fmt::format("  the compiler said: {}\n", entry.log());
  }
  if (!command.is_json) {
    print(text);
    return;
  }
  nlohmann::ordered_json json = {{"kind", cache::name(item.kind)},
                                 {"digest", item.digest},
                                 {"path", item.path.string()},
                                 {"key", fields},
                                 {"payload_bytes", entry.payload().size()},
                                 {"log", entry.log()}};
  if (!entry.meta().empty()) {
    json["meta"] = nlohmann::ordered_json::parse(entry.meta());
  }
  print_json(json);
}

}  // namespace

void add_cache(CLI::App& stof) {
  auto options = std::make_shared<CacheCommand>();
  CLI::App* app = stof.add_subcommand("cache", "Look into the cache on disk");
  app->require_subcommand(1);
  app->footer(kCacheExamples);
  const auto add = [&](const char* name, const char* description,
                       void (*run)(const CacheCommand&)) {
    CLI::App* command = app->add_subcommand(name, description);
    options->cache.add_to(*command);
    command->callback([options, run] { run(*options); });
    return command;
  };
  add("path", "Print where it is",
      [](const CacheCommand& command) { print(command.cache.path().string()); });
  add("ls", "List its entries: kind, digest, bytes", list)
      ->add_flag("--json", options->is_json, "For programs");
  add("verify", "Read every entry; exit code 1 where one is damaged", verify)
      ->add_flag("--json", options->is_json, "For programs");
  CLI::App* one = add("explain", "Say what an entry is and what it depends on", explain);
  one->add_option("DIGEST", options->digest, "Its digest, or how that begins")->required();
  one->add_flag("--json", options->is_json, "For programs");
}

}  // namespace stof::command
