// A backend for tests with two devices whose memory is not the host's, and whose streams do nothing before somebody waits for them: what
// forgets to wait sees old values.
#pragma once

#include <quire/registry.h>

namespace quire::test {

/// `deferred`: computes by the reference. Its devices are {QUIRE_DEVICE_EXTENSION, 0} and 1. A call or copy on memory of another device fails.
const Backend& device_backend();
constexpr quire_device first_device{QUIRE_DEVICE_EXTENSION, 0};
constexpr quire_device second_device{QUIRE_DEVICE_EXTENSION, 1};

/// Pieces of device memory that are not freed yet.
std::size_t live_allocations();
/// The next piece of work that runs fails with this message.
void fail_next_work(const char* message);

}  // namespace quire::test
