#include "search_report.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tune/records.hpp"

namespace stof::bench {

using nlohmann::json;

namespace {

constexpr const char* kTableHead =
    "| model, batch, sequence, layers | none | coarse | fine | both | random | exhaustive | none "
    "over best | of exhaustive: least, mean | repeats: apart, one winner | seconds: whole, "
    "compiling | kernels | trials | a second time: kernels, trials |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

// 0 where it was not timed.
double plan_us_of(const json& way) {
  const auto found = way.find("plan_us");
  return found != way.end() && found->is_number() ? found->get<double>() : 0;
}

double best_of(const json& ways) {
  double best_us = plan_us_of(ways.at("none"));
  for (const auto& way : ways) {
    const double time_us = plan_us_of(way);
    best_us = time_us > 0 ? std::min(best_us, time_us) : best_us;
  }
  return best_us;
}

// Of what was chosen without a search, more than of the best that any found.
double none_over_best(const json& ways) {
  const double best_us = best_of(ways);
  return best_us > 0 ? plan_us_of(ways.at("none")) / best_us - 1 : 0;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(values.size(), 1));
}

std::string shares_text(const std::vector<double>& shares) {
  return shares.empty() ? std::string()
                        : fmt::format("{:.3f}, {:.3f} of {}", *std::ranges::min_element(shares),
                                      mean(shares), shares.size());
}

std::string repeats_text(const json& row) {
  if (!row.contains("repeats")) {
    return {};
  }
  const json& repeats = row["repeats"];
  return fmt::format("{:.1f} %, {} of {} in {}", 100 * (repeats.at("apart").get<double>() - 1),
                     repeats.at("equal_winners").get<int>(), repeats.at("parts").get<int>(),
                     repeats.at("plans_us").size());
}

std::string row_text(const json& row) {
  std::string text = fmt::format("| {} |", row.at("case").get<std::string>());
  if (row.contains("failure")) {
    return text + fmt::format(" {} |\n", row["failure"].get<std::string>());
  }
  const json& ways = row.at("ways");
  for (const char* way : {"none", "coarse", "fine", "full", "random", "exhaustive"}) {
    const double time_us = ways.contains(way) ? plan_us_of(ways[way]) : 0;
    text += time_us > 0 ? fmt::format(" {:.1f} |", time_us) : std::string(" |");
  }
  const json& full = ways.at("full");
  const json& seconds = full.at("seconds");
  const json& again = ways.at("again");
  return text + fmt::format(" {:+.1f} % | {} | {} | {:.1f}{} | {} | {} | {}, {} |\n",
                            100 * none_over_best(ways),
                            shares_text(row.value("fine_of_exhaustive", std::vector<double>())),
                            repeats_text(row), seconds.at("whole").get<double>(),
                            seconds.contains("compile")
                                ? fmt::format(", {:.1f}", seconds["compile"].get<double>())
                                : std::string(),
                            full.at("compiled").get<int>(), full.at("timed").get<int>(),
                            again.at("compiled").get<int>(), again.at("timed").get<int>());
}

// What all rows say together.
std::string summary_of(const json& rows) {
  std::vector<double> shares;
  std::vector<double> over;
  std::vector<double> apart;
  std::string text;
  for (const json& row : rows) {
    if (row.contains("failure")) {
      continue;
    }
    if (row.contains("stopped_by")) {
      text += fmt::format("- {} was stopped: {}.\n", row.at("case").get<std::string>(),
                          row["stopped_by"].get<std::string>());
    }
    over.push_back(100 * none_over_best(row.at("ways")));
    for (const double share : row.value("fine_of_exhaustive", std::vector<double>())) {
      shares.push_back(share);
    }
    if (row.contains("repeats")) {
      apart.push_back(100 * (row["repeats"].at("apart").get<double>() - 1));
    }
    if (!row.contains("parts")) {  // a whole model
      text += fmt::format(
          "- {}: tuned in {:.1f} s with nothing known, a build after it takes {:.2f} s.\n",
          row.at("case").get<std::string>(),
          row["ways"].at("full").at("seconds").at("whole").get<double>(),
          row["ways"].at("again").at("seconds").at("whole").get<double>());
    }
  }
  const auto most = [](const std::vector<double>& values) {
    return *std::ranges::max_element(values);
  };
  if (!over.empty()) {
    text += fmt::format(
        "- The model's choice takes {:.1f} % more than the best plan that was found on average, "
        "{:.1f} % at most, in {} cases.\n",
        mean(over), most(over), over.size());
  }
  if (!shares.empty()) {
    text += fmt::format(
        "- The fine stage reaches {} of what exhaustive search does, least and mean, of the parts "
        "with few settings.\n",
        shares_text(shares));
  }
  if (!apart.empty()) {
    text += fmt::format(
        "- Plans of equal searches with no record are {:.1f} % apart on average, the slowest "
        "against the fastest of a case, {:.1f} % at most, in {} cases.\n",
        mean(apart), most(apart), apart.size());
  }
  return text;
}

std::string text_of(const json& result) {
  std::string text = fmt::format(
      "# Search, {}\n\nMicroseconds of the plan by what was searched, all plans of a layer timed "
      "against each other. Both stages are Tuning::Full with no record: its seconds, kernels and "
      "trials; what was compiled for another layer of the same run is not compiled again. The "
      "other ways search what it timed and time what it did not. Exhaustive: the "
      "parts with at most {} settings; of exhaustive: the best time of such a part as a share of "
      "that of the fine stage's winner, and how many parts there are. Repeats: both stages again "
      "and again with no record; the slowest plan over the fastest, and the parts in which all "
      "have one winner.\n\n",
      result.at("device").get<std::string>(), result.at("small_settings").get<int>());
  text += summary_of(result.at("rows"));
  text += "\n";
  text += kTableHead;
  for (const json& row : result.at("rows")) {
    text += row_text(row);
  }
  if (!result.at("left_out").empty()) {
    text += "\nLeft out:";
    for (const json& name : result["left_out"]) {
      text += " " + name.get<std::string>();
    }
    text += "\n";
  }
  return text;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush()) {
    throw std::runtime_error(fmt::format("cannot write {}", file.string()));
  }
}

}  // namespace

double rounded(double value) {
  return std::round(value * 100) / 100;
}

json to_json(const Found& found, double plan_us) {
  json way = {{"compiled", found.compiled},
              {"timed", found.timed},
              {"recalled", found.recalled},
              {"failed", found.failed},
              {"ended", found.ended},
              {"seconds",
               {{"compile", rounded(found.compile_s)},
                {"check_and_time", rounded(found.whole_s - found.compile_s)},
                {"whole", rounded(found.whole_s)}}}};
  if (plan_us > 0) {
    way["plan_us"] = rounded(plan_us);
  }
  return way;
}

json repeats_json(const std::vector<Found>& repeats, std::span<const double> times_us) {
  const Found& first = repeats.front();
  int equal = 0;
  for (const auto& winner : first.winners) {
    const bool is_equal = std::ranges::all_of(repeats, [&](const Found& other) {
      const auto same = other.winners.find(winner.first);
      return same != other.winners.end() && same->second == winner.second;
    });
    equal += is_equal ? 1 : 0;
  }
  json plans_us = json::array();
  for (const double time_us : times_us) {
    plans_us.push_back(rounded(time_us));
  }
  const auto [least, most] = std::ranges::minmax(times_us);
  json seconds = json::array();
  for (const Found& found : repeats) {
    seconds.push_back(rounded(found.whole_s));
  }
  return {{"plans_us", std::move(plans_us)},
          {"apart", most / least},
          {"equal_winners", equal},
          {"parts", first.winners.size()},
          {"seconds", std::move(seconds)}};
}

void put_row(json& result, json row) {
  for (json& known : result["rows"]) {
    if (known.at("case") == row.at("case")) {
      known = std::move(row);
      return;
    }
  }
  result["rows"].push_back(std::move(row));
}

const json* find_row(const json& result, const std::string& name) {
  for (const json& row : result.at("rows")) {
    if (row.at("case") == name && !row.contains("failure")) {
      return &row;
    }
  }
  return nullptr;
}

bool has_row(const json& result, const std::string& name) {
  return std::ranges::any_of(result.at("rows"),
                             [&](const json& row) { return row.at("case") == name; });
}

bool has_failed(const json& result, const std::string& name) {
  return std::ranges::any_of(result.at("rows"), [&](const json& row) {
    return row.at("case") == name && row.contains("failure");
  });
}

json read_result(const std::filesystem::path& folder, const std::string& device,
                 const std::string& driver) {
  std::ifstream stream(folder / "search.json");
  if (stream) {
    json result = json::parse(stream);
    if (result.value("device", "") == device && result.value("driver", "") == driver &&
        result.contains("small_settings")) {
      return result;
    }
  }
  return {{"device", device}, {"driver", driver}, {"rows", json::array()}};
}

void add_records(const std::filesystem::path& folder,
                 const std::vector<cache::TuningRecord>& records) {
  const std::filesystem::path path = folder / "records.jsonl";
  cache::TuningStore all(std::nullopt, false, {}, {});
  if (std::ifstream stream(path); stream) {
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    tune::merge(all, tune::from_jsonl(text));
  }
  tune::merge(all, records);
  write(path, tune::to_jsonl(tune::fastest(all.all(), static_cast<int>(tune::Records::kPriors))));
}

void write_result(const std::filesystem::path& folder, const json& result) {
  write(folder / "search.json", result.dump(1) + "\n");
  write(folder / "search.md", text_of(result));
}

}  // namespace stof::bench
