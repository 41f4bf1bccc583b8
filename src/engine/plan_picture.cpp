#include "engine/plan_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "engine/data.hpp"
#include "engine/explain.hpp"
#include "io/svg.hpp"
#include "stof/error.hpp"

namespace stof::engine {

namespace {

// Pixels.
constexpr int kWidth = 900;
constexpr int kTop = 56;
constexpr int kRow = 40;
constexpr int kBoxLeft = 64;
constexpr int kBoxWidth = 500;
constexpr int kBoxHeight = 32;
constexpr int kBarLeft = 580;
constexpr int kBarWidth = 220;
constexpr std::size_t kMostLetters = 68;  // in a box

// Launches first … first + period - 1, `count` times.
struct Run {
  std::size_t first = 0;
  std::size_t period = 1;
  std::size_t count = 1;
};

// Labels differ between layers.
bool are_alike(const LaunchDescription& a, const LaunchDescription& b) {
  return a.file == b.file && a.grid == b.grid && a.options == b.options &&
         a.measured_us == b.measured_us;
}

// How often the `period` launches at `first` stand one after another.
std::size_t repeats(const std::vector<LaunchDescription>& launches, std::size_t first,
                    std::size_t period) {
  std::size_t end = first + period;
  while (end < launches.size() && are_alike(launches[end], launches[end - period])) {
    ++end;
  }
  return (end - first) / period;
}

// What repeats most of the launches, and the shortest of what repeats as many.
Run run_at(const std::vector<LaunchDescription>& launches, std::size_t first) {
  Run best{.first = first};
  std::size_t most = 1;
  for (std::size_t period = 1; first + 2 * period <= launches.size(); ++period) {
    const std::size_t count = repeats(launches, first, period);
    if (count >= 2 && count * period > most) {
      best = {.first = first, .period = period, .count = count};
      most = count * period;
    }
  }
  return best;
}

std::vector<Run> runs(const std::vector<LaunchDescription>& launches) {
  std::vector<Run> runs;
  for (std::size_t first = 0; first < launches.size();
       first += runs.back().period * runs.back().count) {
    runs.push_back(run_at(launches, first));
  }
  return runs;
}

std::string shortened(const std::string& text) {
  return text.size() <= kMostLetters ? text
                                     : fmt::format("{}...", text.substr(0, kMostLetters - 3));
}

std::string text_at(int x, int y, std::string_view kind, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, kind,
                     io::svg_escaped(text));
}

class Picture {
 public:
  explicit Picture(const PlanDescription& description) : launches_(description.launches) {
    for (const LaunchDescription& launch : launches_) {
      longest_us_ = std::max({longest_us_, launch.predicted_us, launch.measured_us.value_or(0)});
    }
  }

  std::string draw(const std::string& title) {
    const bool is_measured = std::ranges::any_of(
        launches_, [](const LaunchDescription& launch) { return launch.measured_us.has_value(); });
    for (const Run& run : runs(launches_)) {
      add(run);
    }
    const int height = y_ + 8;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
               "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n{3}",
               kWidth, height, io::svg_escaped(title), kStyle) +
           text_at(10, 22, "title", title) + text_at(kBarLeft, 44, "predicted", "predicted") +
           (is_measured ? text_at(kBarLeft + 80, 44, "measured", "measured") : "") + body_ +
           "</svg>\n";
  }

 private:
  // Greys that can be read on white and on black.
  static constexpr std::string_view kStyle =
      "<style>\n"
      "text { font: 12px system-ui, sans-serif; fill: #57606a }\n"
      ".title { font-weight: 600; font-size: 14px } .small { font-size: 10px }\n"
      ".box { fill: #2f81f7; fill-opacity: .12; stroke: #2f81f7 }\n"
      ".line { stroke: #8c959f; fill: none }\n"
      "rect.predicted { fill: #8c959f } rect.measured { fill: #2f81f7 }\n"
      "text.predicted { fill: #8c959f } text.measured { fill: #2f81f7 }\n"
      "@media (prefers-color-scheme: dark) { text { fill: #adbac7 } }\n"
      "</style>\n";

  void add(const Run& run) {
    const int begin = y_;
    for (std::size_t i = run.first; i < run.first + run.period; ++i) {
      add(launches_[i]);
    }
    if (run.count > 1) {
      const int end = y_ - (kRow - kBoxHeight);
      body_ +=
          fmt::format("<path d=\"M{0} {1}h-8V{2}h8\" class=\"line\"/>\n", kBoxLeft - 4, begin, end);
      body_ += text_at(8, (begin + end) / 2 + 4, "count", fmt::format("{} x", run.count));
    }
  }

  void add(const LaunchDescription& launch) {
    if (y_ > kTop) {
      body_ += fmt::format("<path d=\"M{} {}v{}\" class=\"line\"/>\n", kBoxLeft + kBoxWidth / 2,
                           y_ - (kRow - kBoxHeight), kRow - kBoxHeight);
    }
    body_ +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" class=\"box\"/>\n",
                    kBoxLeft, y_, kBoxWidth, kBoxHeight);
    body_ += text_at(kBoxLeft + 8, y_ + 14, "what", shortened(launch.label));
    body_ += text_at(kBoxLeft + 8, y_ + 27, "small", launch.file);
    add_bar(y_ + 4, "predicted", launch.predicted_us);
    if (launch.measured_us) {
      add_bar(y_ + 18, "measured", *launch.measured_us);
    }
    y_ += kRow;
  }

  void add_bar(int y, const char* kind, double time_us) {
    const double width = longest_us_ > 0 ? kBarWidth * time_us / longest_us_ : 0;
    body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"10\" class=\"{}\"/>\n",
                         kBarLeft, y, width, kind);
    body_ += text_at(kBarLeft + static_cast<int>(width) + 6, y + 9, "small",
                     fmt::format("{:.1f} us", time_us));
  }

  const std::vector<LaunchDescription>& launches_;
  double longest_us_ = 0;
  int y_ = kTop;
  std::string body_;
};

}  // namespace

std::string plan_svg(const PlanDescription& description, const std::string& title) {
  return Picture(description).draw(title);
}

std::string plan_svg(const Plan& plan, const DimValues& dims) {
  if (!plan.data().gpu) {
    throw GraphError("plan: the reference backend launches no kernels, there is nothing to draw");
  }
  if (!dims.empty()) {
    check_dims(plan.data(), dims);
  }
  const PlanDescription description = plan.data().gpu->describe(dims);
  return plan_svg(description, fmt::format("{}: {} on {}", plan.data().graph.name(),
                                           launches_of_kernels(std::ssize(description.launches),
                                                               description.kernel_count),
                                           description.device));
}

}  // namespace stof::engine
