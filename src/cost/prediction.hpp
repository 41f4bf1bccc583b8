#pragma once

#include <string>

namespace stof::cost {

// The time of one launch, and what it would take if nothing but one thing counted, all in
// microseconds.
struct Prediction {
  double layout_us = 0;  // what is built ahead of it on each run: its share
  double launch_us = 0;  // from the end of the kernel before it to its first block
  double start_us = 0;   // until the first data arrive
  double blocks_us = 0;  // start and end of the blocks of an SM, and what they tell each other
  double core_us = 0;    // ordinary cores: softmax, masks, epilogues, scalar products
  double tensor_us = 0;  // tensor cores
  double l2_us = 0;      // L2 to the SMs
  double wait_us = 0;    // the longest chain of steps that wait for each other, blocks among them
  double dram_us = 0;    // memory

  // layout + launch + start + max(dram, wait, blocks + core + max(tensor, l2))
  double total_us() const;
  // "12.3 us: launch 0.8, start 0.6, blocks 3.4, …", without parts of less than 0.05 us.
  std::string text() const;
};

// By the total; where that is equal by all parts together.
bool is_faster(const Prediction& a, const Prediction& b);

}  // namespace stof::cost
