#include "cost/makespan.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

using stof::cost::makespan;
using stof::cost::WorkGroup;

TEST_CASE("each worker takes the next piece when it is free") {
  CHECK(makespan({}, 3) == 0);
  CHECK(makespan({{2, 3}}, 3) == 2);
  CHECK(makespan({{2, 4}}, 3) == 4);
  CHECK(makespan({{5, 1}, {3, 2}, {2, 2}}, 2) == 8);  // 5 + 2 beside 3 + 3 + 2
  CHECK(makespan({{1, 1000001}}, 1000) == 1001);
}

TEST_CASE("it lies between the bounds of every schedule of that kind") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<WorkGroup> groups(1 + random() % 6);
    double total = 0;
    for (WorkGroup& group : groups) {
      group = {.cost = static_cast<double>(1 + random() % 50),
               .count = static_cast<std::int64_t>(random() % 300)};
      total += group.cost * static_cast<double>(group.count);
    }
    std::sort(groups.begin(), groups.end(),
              [](const WorkGroup& a, const WorkGroup& b) { return a.cost > b.cost; });
    const auto workers = static_cast<std::int64_t>(1 + random() % 40);
    const double longest = groups.front().cost;
    const double span = makespan(groups, workers);
    CHECK(span >= total / static_cast<double>(workers) - 1e-9);
    CHECK(span <=
          total / static_cast<double>(workers) + longest * static_cast<double>(groups.size()));
  }
}
