// Faults of kernels that the emulator finds, and how it tells of them.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

namespace quire::simt {

/// Where a thread waits, or that it has ended.
enum class Operation : std::uint8_t { ended, barrier, block_any, warp_sum, warp_max, warp_shuffle };

inline bool of_block(Operation operation) { return operation == Operation::barrier || operation == Operation::block_any; }
inline bool of_warp(Operation operation) { return operation >= Operation::warp_sum; }

struct Fault {
  enum Kind : std::uint8_t {
    none,
    divergent_barrier,         ///< every thread waits for the block, not all at the same place
    divergent_warp_operation,  ///< every thread of a warp is at a warp operation, not all at the same one
    stuck,                     ///< no thread can go on
    lane_outside,              ///< a shuffle names a lane that the warp has not
    shared_overrun,            ///< a store outside the block's shared memory
    thrown,                    ///< an exception left a kernel
    no_memory                  ///< for fibers or shared memory
  };
  Kind kind = none;
  int thread = 0;           ///< the one at fault, or any of the warp
  std::int64_t detail = 0;  ///< the lane; the byte
};

/// A thread when its block stopped.
struct Standing {
  Operation operation = Operation::ended;
  std::source_location where;
};

/// "kernel attend, block 3: divergent barrier: threads 0-31 wait at attend.h:120 (barrier), threads 32-63 at attend.h:140 (block_any)".
std::string fault_text(const Fault& fault, const char* kernel, std::int64_t block, const Standing* standing, int threads, int warp_width,
                       std::int64_t shared_bytes);

}  // namespace quire::simt
