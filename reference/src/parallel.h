// The one seam to threads: loops whose iterations are independent.
#pragma once

#include <cstdint>
#include <functional>

namespace quire::reference {

/// Threads that loops use: QUIRE_THREADS where it is set (1 to 4096), else the machine's. Raises invalid_argument for another value.
int thread_count();

/// "oneTBB" or "plain threads": what `parallel_for` runs on in this build.
const char* parallel_name();

/// Calls body(i) for every i in [0, count), in any order on several threads. `work` estimates the additions of all iterations together: small
/// loops run on the calling thread. An exception of an iteration reaches the caller after every thread has stopped.
void parallel_for(std::int64_t count, double work, const std::function<void(std::int64_t)>& body);

}  // namespace quire::reference
