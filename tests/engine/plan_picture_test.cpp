#include "engine/plan_picture.hpp"

#include <string>

#include <doctest/doctest.h>

#include "error_of.hpp"

namespace stof::engine {
namespace {

LaunchDescription launch(const std::string& label, const std::string& file, double predicted_us,
                         std::optional<double> measured_us = {}) {
  LaunchDescription launch;
  launch.label = label;
  launch.file = file;
  launch.grid = launch.block = launch.cluster = {1, 1, 1};
  launch.predicted_us = predicted_us;
  launch.measured_us = measured_us;
  return launch;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("plan picture: equal layers are drawn once, with how many there are") {
  PlanDescription plan;
  plan.launches.push_back(launch("embed", "embedding.jinja", 4));
  for (int layer = 0; layer < 12; ++layer) {
    const std::string number = std::to_string(layer);
    plan.launches.push_back(launch("product " + number, "gemm.jinja", 20));
    plan.launches.push_back(launch("product " + number, "gemm.jinja", 20));
    plan.launches.push_back(launch("norm " + number, "norm.jinja", 5));
  }
  const std::string text = plan_svg(plan, "a < b");
  CHECK(text.find("<title>a &lt; b</title>") != std::string::npos);
  CHECK(count_of(text, "class=\"box\"") == 4);
  CHECK(count_of(text, ">12 x</text>") == 1);
  CHECK(count_of(text, " x</text>") == 1);
  CHECK(text.find("product 0") != std::string::npos);
  CHECK(text.find("product 1") == std::string::npos);
}

TEST_CASE("plan picture: bars are as long as times, and measured ones are apart") {
  PlanDescription plan;
  plan.launches = {launch("a", "a.jinja", 10, 40), launch("b", "b.jinja", 20)};
  const std::string text = plan_svg(plan, "plan");
  CHECK(text.find("width=\"55.0\" height=\"10\" class=\"predicted\"") != std::string::npos);
  CHECK(text.find("width=\"220.0\" height=\"10\" class=\"measured\"") != std::string::npos);
  CHECK(text.find("width=\"110.0\" height=\"10\" class=\"predicted\"") != std::string::npos);
  CHECK(count_of(text, "height=\"10\" class=\"measured\"") == 1);
  CHECK(text.find(">40.0 us</text>") != std::string::npos);
  CHECK(text.find(">measured</text>") != std::string::npos);
  plan.launches = {launch("b", "b.jinja", 20)};
  CHECK(plan_svg(plan, "plan").find(">measured</text>") == std::string::npos);
}

TEST_CASE("plan picture: launches that are measured differently are not alike") {
  PlanDescription plan;
  plan.launches = {launch("a", "a.jinja", 10, 40), launch("a", "a.jinja", 10, 41)};
  CHECK(count_of(plan_svg(plan, "plan"), "class=\"box\"") == 2);
}

TEST_CASE("plan picture: nothing to launch is a picture, the reference backend is an error") {
  CHECK(plan_svg(PlanDescription(), "empty").find("</svg>") != std::string::npos);
  Graph graph("copy");
  graph.output("y", graph.relu(graph.input("x", {2, 3}, DType::Float32)));
  const Plan plan = Engine({.backend = Backend::Reference}).build(graph);
  CHECK(test::error_of([&] { plan_svg(plan); }) ==
        "plan: the reference backend launches no kernels, there is nothing to draw");
}

}  // namespace
}  // namespace stof::engine
