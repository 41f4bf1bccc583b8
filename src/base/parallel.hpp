#pragma once

#include <cstdint>
#include <functional>

namespace stof::base {

// Calls body(0), body(1), …, body(count - 1), each once, on the calling thread and up to
// thread_count - 1 others; 0 means one a core. The result does not depend on the number of threads
// if no call reads what another writes. If calls throw, what the one of lowest index threw is
// thrown again when all have ended, and not all later calls are made.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body,
                  int thread_count = 0);

}  // namespace stof::base
