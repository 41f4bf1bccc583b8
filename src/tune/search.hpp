#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fusion/scheme.hpp"
#include "tune/trials.hpp"

// The search for the fusion scheme and the settings of its segments, with a stopwatch, in two
// stages (Wang et al., "STOF", 2026, section 4.4). It knows no GPU: what it may try and how that is
// timed are given to it.
namespace stof::tune {

// The settings of a problem, those that should be fastest first: what runs without a search leads.
using SettingsOf = std::function<std::vector<Setting>(const std::string& problem)>;

struct Space {
  // Schemes that the model proposes, the best first: what runs without a search leads.
  std::vector<fusion::Scheme> proposals;
  // The schemes that are one move away, in the order in which they are tried.
  std::function<std::vector<fusion::Scheme>(const fusion::Scheme&)> moves;
  // The problem that a segment is; nothing where no template takes it.
  std::function<std::optional<std::string>(const fusion::Segment&)> problem;
  SettingsOf few_settings;  // for the coarse stage
  SettingsOf settings;      // all, of which the first is the first of the few
};

// A problem, and how many segments are it.
struct Part {
  std::string problem;
  int count = 1;
};

struct SearchOptions {
  int coarse_settings = 3;    // that a new segment is timed with
  double coarse_share = 0.5;  // of the budget, where a fine stage follows
  int first_share = 5;        // settings of each segment in the first round of the fine stage
  int small = 48;             // a segment with no more settings has all of them in that round
  int reward = 2;             // more in the next round for the segment that gained most
  double least_gain = 0.01;   // of the whole, that a round of the fine stage has to bring
  int patience = 2;           // rounds that bring less, one after the other, until it ends
  bool is_fine = true;        // whether there is a fine stage
};

// What is best for a problem, of what was timed.
struct Decision {
  Part part;
  Setting setting;                  // the first of the problem's where none could be timed
  std::optional<double> time_us;    // of one segment; nothing: not timed
  std::optional<double> before_us;  // the same of the setting that runs without a search
};

struct SearchResult {
  std::optional<fusion::Scheme> scheme;  // nothing: of parts alone
  std::vector<Decision> decisions;       // in the order in which the segments run first
  // Of all segments of the best scheme, and of what runs without a search; nothing where not all
  // of them were timed.
  std::optional<double> time_us;
  std::optional<double> before_us;
  End end = End::Exhausted;
};

// The coarse stage: each distinct segment of the proposals, and of what the moves make of the best
// of them, is timed with a few settings; a move that is faster is kept, else rolled back. The
// first proposal where nothing could be timed. Throws InternalError without proposals.
fusion::Scheme coarse_search(const Space& space, Trials& trials, const SearchOptions& options = {});

// The fine stage: rounds of settings for each of the parts, half of them by the model's order and
// half next to the best so far. The part that gained most gets more of the next round. What is
// small is searched exhaustively: its part of the whole is too little for a gain to show.
SearchResult fine_search(const std::vector<Part>& parts, const SettingsOf& settings, Trials& trials,
                         const SearchOptions& options = {});

// Both, the second where the options ask for it. Equal outcomes, equal result.
SearchResult search(const Space& space, Trials& trials, const SearchOptions& options = {});

// The distinct problems of a scheme in order; nothing where a segment has none.
std::optional<std::vector<Part>> parts_of(const Space& space, const fusion::Scheme& scheme);

}  // namespace stof::tune
