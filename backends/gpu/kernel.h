// A kernel and a launch of it as values: what planning makes, and a runtime runs, captures or replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace quire::gpu {

/// A kernel of one toolchain: what its runtime launches. Every kernel takes one struct of parameters by value.
struct Kernel {
  const char* name = "";
  const void* entry = nullptr;
};

/// `blocks` blocks of `threads` threads (a multiple of every warp width, 64), each block with `shared_bytes` of its own. A kernel loops over
/// its work from its block's number in steps of the number of blocks, so a runtime may cut `blocks` to its grid's limit.
struct Launch {
  static constexpr std::size_t most_bytes = 2048;

  Kernel kernel;
  std::int64_t blocks = 0;
  std::int32_t threads = 0;
  std::int64_t shared_bytes = 0;
  std::size_t parameter_bytes = 0;
  alignas(16) std::byte parameters[most_bytes];

  template <typename Parameters>
  static Launch of(const Kernel& kernel, std::int64_t blocks, std::int32_t threads, std::int64_t shared_bytes, const Parameters& parameters) {
    static_assert(std::is_trivially_copyable_v<Parameters> && sizeof(Parameters) <= most_bytes);
    Launch launch;
    launch.kernel = kernel;
    launch.blocks = blocks;
    launch.threads = threads;
    launch.shared_bytes = shared_bytes;
    launch.parameter_bytes = sizeof parameters;
    std::memcpy(launch.parameters, &parameters, sizeof parameters);
    return launch;
  }
};

}  // namespace quire::gpu
