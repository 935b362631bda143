// Calls of sizes and layouts that the suite's families do not draw: heads around a warp's and a block's width, contexts of several tiles,
// axes padded inside rows.
#pragma once

#include <quire/registry.h>

#include <string>
#include <vector>

namespace quire::gpu::test {

struct LayoutReport {
  int calls = 0;
  std::vector<std::string> failures;  ///< one line each, with the layout's name
};

/// Each judged beside the reference, as conformance judges. Stops at the first failure if told so.
LayoutReport judge_layouts(const Backend& candidate, bool stop_at_failure);

}  // namespace quire::gpu::test
