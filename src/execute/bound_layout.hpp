#pragma once

#include <cstddef>
#include <functional>

#include "cuda/launches.hpp"
#include "cuda/pinned_value.hpp"
#include "kernel/program.hpp"
#include "mask_layout/build.hpp"

namespace stof::execute {

// Where the layout lies in its piece of the workspace. Throws GraphError where 32 bits do not count
// its entries.
mask_layout::RunTimeLayout run_time_layout(const kernel::LayoutBuild& build);

// The layout of a mask that is built on each run, with the addresses of its memory, on the current
// GPU.
class BoundLayout {
 public:
  using Address = std::function<std::byte*(const kernel::Location&)>;

  // `workspace` has run_time_layout(build).workspace_bytes(). `build` must outlive this.
  BoundLayout(const kernel::LayoutBuild& build, const Address& address, void* workspace);

  // The kernels of a build; as many after `set`.
  const cuda::Launches& launches() const { return launches_; }
  void* array(const kernel::LayoutArray& array) const;

  bool reads(kernel::MemorySpace space, int index) const;
  // Makes the launches again, with other addresses.
  void set(const Address& address);

  // Throws GraphError where a build that has ended left the layout empty, which is forgotten then.
  void check() const;

 private:
  void make_launches();

  const kernel::LayoutBuild& build_;
  void* workspace_;
  mask_layout::DeviceMask mask_;
  mask_layout::RunTimeLayout layout_;
  mask_layout::Layout arrays_;
  cuda::PinnedValue<mask_layout::LayoutReport> report_;
  cuda::Launches launches_;
};

}  // namespace stof::execute
