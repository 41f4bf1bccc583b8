#include "base/gpu_target.hpp"

#include <string>

#include <doctest/doctest.h>

#include "stof/error.hpp"

using stof::base::GpuTarget;
using stof::base::native_target;
using stof::base::parse_gpu_target;

TEST_CASE("targets are read and written in NVRTC's spelling") {
  for (const char* text : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a",
                           "sm_100f", "sm_120", "sm_120a", "sm_121f"}) {
    CHECK(parse_gpu_target(text).text() == text);
  }
  CHECK(parse_gpu_target("sm_90a") == GpuTarget{.capability = 90, .variant = 'a'});
}

TEST_CASE("any other text is an error that lists the targets") {
  for (const char* text : {"", "sm_", "sm_75", "sm_90f", "sm_80a", "sm_090", "sm_90 ", " sm_90",
                           "sm_90aa", "sm_-90", "compute_90", "SM_90", "sm_99999999999", "90"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_gpu_target(text), stof::GraphError);
  }
  CHECK_THROWS_WITH(parse_gpu_target("sm_75"),
                    "target: 'sm_75' is none of sm_80, sm_86, sm_87, sm_88, sm_89, sm_90, sm_90a, "
                    "sm_100, sm_100a, sm_100f, sm_103, sm_103a, sm_103f, sm_110, sm_110a, sm_110f, "
                    "sm_120, sm_120a, sm_120f, sm_121, sm_121a, sm_121f");
}

TEST_CASE("a cubin runs on its chip and, without a letter, on later ones of its generation") {
  CHECK(parse_gpu_target("sm_80").runs_on(80));
  CHECK(parse_gpu_target("sm_80").runs_on(86));
  CHECK_FALSE(parse_gpu_target("sm_86").runs_on(80));
  CHECK_FALSE(parse_gpu_target("sm_80").runs_on(90));
  CHECK(parse_gpu_target("sm_90a").runs_on(90));
  CHECK(parse_gpu_target("sm_100f").runs_on(103));
  CHECK_FALSE(parse_gpu_target("sm_100a").runs_on(103));
}

TEST_CASE("only sm_90a has wgmma") {
  CHECK(parse_gpu_target("sm_90a").has_wgmma());
  CHECK_FALSE(parse_gpu_target("sm_90").has_wgmma());
  CHECK_FALSE(parse_gpu_target("sm_100a").has_wgmma());
}

TEST_CASE("a GPU's own target is the newest that runs on it") {
  CHECK(native_target(80).text() == "sm_80");
  CHECK(native_target(89).text() == "sm_89");
  CHECK(native_target(90).text() == "sm_90a");
  CHECK(native_target(101).text() == "sm_100");
  CHECK(native_target(120).text() == "sm_120");
  CHECK_THROWS_WITH_AS(native_target(75),
                       "target: compute capability 7.5 is none that stof compiles for",
                       stof::GraphError);
}
