#include <cstdlib>

#include <doctest/doctest.h>

#include "base/log.hpp"

namespace {

struct Formatted {
  bool* was_formatted;
};

}  // namespace

template <>
struct fmt::formatter<Formatted> : fmt::formatter<int> {
  template <typename Context>
  auto format(const Formatted& value, Context& context) const {
    *value.was_formatted = true;
    return context.out();
  }
};

TEST_CASE("without STOF_LOG nothing is formatted") {
  unsetenv("STOF_LOG");
  CHECK_FALSE(stof::base::is_log_enabled());
  bool was_formatted = false;
  stof::base::log("{}", Formatted{&was_formatted});
  CHECK_FALSE(was_formatted);
}
