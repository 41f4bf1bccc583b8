#include "selection_record.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace stof::bench {

using nlohmann::json;

namespace {

// The names of a case's extents, in the order in which they are written.
constexpr std::array kDims = {"batch", "heads", "q_len", "kv_len", "head_dim"};

double rounded(double time_us) {
  return std::round(time_us * 1000) / 1000;
}

json to_json(const cost::TileWork& work) {
  json groups = json::array();
  for (const cost::TileGroup& group : work.groups) {
    groups.push_back({group.entries, group.part, group.count});
  }
  return groups;
}

using WorkByTile = std::map<std::int64_t, cost::TileWork>;

json to_json(const WorkByTile& works) {
  json written = json::object();
  for (const auto& [tile_q, work] : works) {
    written[std::to_string(tile_q)] = to_json(work);
  }
  return written;
}

cost::TileWork tile_work_from(const json& groups, std::int64_t tile_q) {
  cost::TileWork work{.tile_q = tile_q, .groups = {}};
  for (const json& group : groups) {
    work.groups.push_back({.entries = group.at(0), .part = group.at(1), .count = group.at(2)});
  }
  return work;
}

WorkByTile works_from(const json& written) {
  WorkByTile works;
  for (const auto& [tile_q, groups] : written.items()) {
    works.emplace(std::stoll(tile_q), tile_work_from(groups, std::stoll(tile_q)));
  }
  return works;
}

json to_json(const mask::MaskFeatures& features) {
  return {{"class", static_cast<int>(features.mask_class)},
          {"q_len", features.extent.q_len},
          {"kv_len", features.extent.kv_len},
          {"planes", {features.mask_batch, features.mask_heads}},
          {"density", features.density},
          {"tiles", {features.tiles, features.full_tiles, features.part_tiles}},
          {"distinct_bitmaps", features.distinct_bitmaps},
          {"mean_keys", features.mean_keys},
          {"max_keys", features.max_keys}};
}

mask::MaskFeatures features_from(const json& written) {
  mask::MaskFeatures features;
  features.mask_class = static_cast<mask::MaskClass>(written.at("class").get<int>());
  features.extent = {.q_len = written.at("q_len"), .kv_len = written.at("kv_len")};
  features.mask_batch = written.at("planes").at(0);
  features.mask_heads = written.at("planes").at(1);
  features.density = written.at("density");
  features.tiles = written.at("tiles").at(0);
  features.full_tiles = written.at("tiles").at(1);
  features.part_tiles = written.at("tiles").at(2);
  features.distinct_bitmaps = written.at("distinct_bitmaps");
  features.mean_keys = written.at("mean_keys");
  features.max_keys = written.at("max_keys");
  return features;
}

using Settings = std::vector<std::pair<std::string, kernel::KernelConfig>>;

// Candidates by the place of their setting, which all cases share.
json to_json(const SelectionCase& one, Settings& settings) {
  json dims = json::array();
  for (const char* name : kDims) {
    dims.push_back(one.dims.at(name));
  }
  json times = json::array();
  for (const SelectionCandidate& candidate : one.candidates) {
    const std::pair setting(candidate.kernel, candidate.config);
    auto place = std::ranges::find(settings, setting);
    if (place == settings.end()) {
      place = settings.insert(place, setting);
    }
    times.push_back({std::distance(settings.begin(), place),
                     candidate.measured_us ? json(rounded(*candidate.measured_us)) : json(nullptr),
                     rounded(candidate.predicted_us), candidate.is_in_place ? 1 : 0});
  }
  return {{"dims", std::move(dims)}, {"times", std::move(times)}};
}

SelectionCase case_from(const json& written, const Settings& settings) {
  SelectionCase one;
  for (std::size_t i = 0; i < kDims.size(); ++i) {
    one.dims.emplace(kDims[i], written.at("dims").at(i));
  }
  one.dims.emplace("kv_heads", one.dims.at("heads"));
  one.dims.emplace("value_dim", one.dims.at("head_dim"));
  for (const json& time : written.at("times")) {
    const auto& [kernel, config] = settings.at(time.at(0));
    one.candidates.push_back(
        {.kernel = kernel,
         .config = config,
         .measured_us = time.at(1).is_null() ? std::nullopt : std::optional<double>(time.at(1)),
         .predicted_us = time.at(2),
         .is_in_place = time.at(3) == 1});
  }
  return one;
}

}  // namespace

json to_json(const std::vector<SelectionMask>& masks) {
  Settings settings;
  json written = json::array();
  for (const SelectionMask& mask : masks) {
    json cases = json::array();
    for (const SelectionCase& one : mask.cases) {
      cases.push_back(to_json(one, settings));
    }
    written.push_back({{"family", mask.family},
                       {"variant", mask.variant},
                       {"length", mask.length},
                       {"seen_of_16", mask.seen_of_16},
                       {"features", to_json(mask.features)},
                       {"work", to_json(mask.tiles)},
                       {"packed_work", to_json(mask.packed)},
                       {"windows", {mask.windows.mean, mask.windows.most, mask.windows.span}},
                       {"global_tiles", mask.global_tiles},
                       {"cases", std::move(cases)}});
  }
  json kernels = json::array();
  for (const auto& [kernel, config] : settings) {
    kernels.push_back({{"kernel", kernel}, {"parameters", config}});
  }
  return {{"settings", std::move(kernels)}, {"masks", std::move(written)}};
}

std::vector<SelectionMask> selection_from_json(const json& written) {
  Settings settings;
  for (const json& setting : written.at("settings")) {
    settings.emplace_back(setting.at("kernel"), setting.at("parameters"));
  }
  std::vector<SelectionMask> masks;
  for (const json& one : written.at("masks")) {
    SelectionMask& mask = masks.emplace_back();
    mask.family = one.at("family");
    mask.variant = one.at("variant");
    mask.length = one.at("length");
    mask.seen_of_16 = one.at("seen_of_16");
    mask.features = features_from(one.at("features"));
    mask.tiles = works_from(one.at("work"));
    mask.packed = works_from(one.at("packed_work"));
    const json& windows = one.at("windows");
    mask.windows = {.mean = windows.at(0), .most = windows.at(1), .span = windows.at(2)};
    mask.global_tiles = one.at("global_tiles");
    for (const json& attention : one.at("cases")) {
      mask.cases.push_back(case_from(attention, settings));
    }
  }
  return masks;
}

}  // namespace stof::bench
