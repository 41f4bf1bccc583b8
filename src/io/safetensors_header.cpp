// The header is read event by event: its few forms are known, so anything else is refused where it
// begins, before it can nest deep or fill memory.
#include "io/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "base/text.hpp"
#include "stof/error.hpp"
#include "stof/tensor.hpp"

namespace stof::io {

namespace {

using base::quote;

struct DTypeName {
  std::string_view text;
  DType dtype;
};

constexpr std::array<DTypeName, 7> kDTypeNames = {{
    {"F16", DType::Float16},
    {"BF16", DType::BFloat16},
    {"F32", DType::Float32},
    {"I32", DType::Int32},
    {"I64", DType::Int64},
    {"U8", DType::UInt8},
    {"BOOL", DType::Bool},
}};

constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  bool start_object(std::size_t /*size*/) override {
    if (place_ == Place::Start) {
      place_ = Place::Tensors;
    } else if (place_ == Place::Tensors) {
      place_ = tensor_ == kSafetensorsMetadata ? Place::Metadata : Place::Fields;
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (place_ == Place::Tensors) {
      const bool is_metadata = name == kSafetensorsMetadata;
      if (header_.entries.contains(name) || (is_metadata && std::exchange(has_metadata_, true))) {
        throw GraphError(fmt::format("header has {} twice", quote(name)));
      }
      tensor_ = std::move(name);
      return true;
    }
    if (!fields_.insert(name).second) {
      throw GraphError(fmt::format("{} has {} twice", quote(tensor_), quote(name)));
    }
    if (place_ == Place::Fields && std::ranges::find(kFields, name) == kFields.end()) {
      throw GraphError(fmt::format("{} has an unknown field {}", quote(tensor_), quote(name)));
    }
    field_ = std::move(name);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::Fields) {
      finish_entry();
    }
    place_ = place_ == Place::Tensors ? Place::End : Place::Tensors;
    fields_.clear();
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::Metadata) {
      header_.metadata.emplace(field_, std::move(text));
    } else if (place_ == Place::Fields && field_ == "dtype") {
      entry_.dtype = std::move(text);
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (place_ != Place::Fields || (field_ != "shape" && field_ != "data_offsets")) {
      refuse("a list");
    }
    place_ = Place::Numbers;
    numbers_.clear();
    return true;
  }

  bool number_unsigned(std::uint64_t number) override {
    if (place_ != Place::Numbers || number > std::numeric_limits<std::int64_t>::max()) {
      refuse(fmt::to_string(number));
    }
    const std::size_t limit = field_ == "shape" ? kMaxSafetensorsRank : 2;
    if (numbers_.size() == limit) {
      throw GraphError(
          fmt::format("{} has more than {} numbers in {}", quote(tensor_), limit, quote(field_)));
    }
    numbers_.push_back(static_cast<std::int64_t>(number));
    return true;
  }

  bool end_array() override {
    place_ = Place::Fields;
    if (field_ == "shape") {
      entry_.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) {
      throw GraphError(fmt::format("{} has \"data_offsets\" [{}], not [begin, end]", quote(tensor_),
                                   fmt::join(numbers_, ", ")));
    }
    entry_.begin = static_cast<std::size_t>(numbers_[0]);
    entry_.end = static_cast<std::size_t>(numbers_[1]);
    return true;
  }

  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool number_integer(std::int64_t number) override { refuse(fmt::to_string(number)); }
  bool number_float(double /*number*/, const std::string& text) override { refuse(text); }
  bool binary(nlohmann::json::binary_t& /*bytes*/) override { refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    throw GraphError(fmt::format("header is no JSON at byte {}", position));
  }

 private:
  enum class Place { Start, Tensors, Metadata, Fields, Numbers, End };

  void finish_entry() {
    for (const std::string_view field : kFields) {
      if (!fields_.contains(field)) {
        throw GraphError(fmt::format("{} has no {}", quote(tensor_), quote(field)));
      }
    }
    header_.entries.emplace(std::move(tensor_), std::exchange(entry_, {}));
  }

  // What stands here may not.
  [[noreturn]] void refuse(std::string_view what) const {
    if (place_ == Place::Start) {
      throw GraphError(fmt::format("header is {}, not an object", what));
    }
    if (place_ == Place::Tensors) {
      throw GraphError(fmt::format("{} is {}, not an object", quote(tensor_), what));
    }
    throw GraphError(
        fmt::format("{}: {} is not expected in {}", quote(tensor_), what, quote(field_)));
  }

  SafetensorsHeader& header_;
  Place place_ = Place::Start;
  bool has_metadata_ = false;
  std::set<std::string, std::less<>> fields_;
  std::string tensor_;
  std::string field_;
  SafetensorsEntry entry_;
  std::vector<std::int64_t> numbers_;
};

void check_sizes(const SafetensorsHeader& header) {
  for (const auto& [name, entry] : header.entries) {
    const std::optional<DType> dtype = dtype_from_safetensors(entry.dtype);
    if (!dtype) {
      continue;  // an error when it is asked for
    }
    const TensorView view = {.dtype = *dtype, .shape = entry.shape};
    const auto needed = static_cast<std::uint64_t>(view.element_count() * size_bytes(*dtype));
    if (needed != entry.end - entry.begin) {
      throw GraphError(fmt::format("{}: [{}] of {} takes {} bytes, its \"data_offsets\" hold {}",
                                   quote(name), fmt::join(entry.shape, ", "), entry.dtype, needed,
                                   entry.end - entry.begin));
    }
  }
}

void check_ranges(const SafetensorsHeader& header, std::size_t data_bytes) {
  std::vector<std::pair<const SafetensorsEntry*, const std::string*>> order;
  order.reserve(header.entries.size());
  for (const auto& [name, entry] : header.entries) {
    order.emplace_back(&entry, &name);
  }
  std::ranges::sort(order, {},
                    [](const auto& item) { return std::pair(item.first->begin, item.first->end); });
  std::size_t covered = 0;
  for (const auto& [entry, name] : order) {
    if (entry->end > data_bytes) {
      throw GraphError(fmt::format("{} ends at byte {} of the data, which has {}", quote(*name),
                                   entry->end, data_bytes));
    }
    if (entry->begin < covered) {
      throw GraphError(fmt::format("{} begins at byte {} of the data, inside another tensor",
                                   quote(*name), entry->begin));
    }
    if (entry->begin > covered) {
      throw GraphError(
          fmt::format("bytes {} to {} of the data belong to no tensor", covered, entry->begin));
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    throw GraphError(
        fmt::format("bytes {} to {} of the data belong to no tensor", covered, data_bytes));
  }
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  const auto* const found = std::ranges::find(kDTypeNames, dtype, &DTypeName::dtype);
  STOF_CHECK(found != kDTypeNames.end()) << name(dtype);
  return found->text;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  const auto* const found = std::ranges::find(kDTypeNames, name, &DTypeName::text);
  return found == kDTypeNames.end() ? std::nullopt : std::optional(found->dtype);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::size_t data_bytes) {
  SafetensorsHeader header;
  HeaderReader reader(header);
  nlohmann::json::sax_parse(json, &reader);
  check_sizes(header);
  check_ranges(header, data_bytes);
  return header;
}

}  // namespace stof::io
