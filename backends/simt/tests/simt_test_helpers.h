// Running a test's kernel under every warp width and order.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../../gpu/dialect.h"
#include "../../gpu/runtime.h"
#include "../launch.h"
#include "../settings.h"

namespace quire::simt::test {

using gpu::Failure;
using gpu::Kernel;
using gpu::Launch;

constexpr Order every_order[] = {Order::in_order, Order::random, Order::greedy};
constexpr int every_width[] = {32, 64};

inline Settings settings_of(int width, Order order, std::uint64_t seed = 0) {
  Settings settings;
  settings.warp_width = width;
  settings.order = order;
  settings.seed = seed;
  settings.workers = 3;
  return settings;
}

// To the thread sanitizer each thread of a block is a thread, and after a fault it makes them all anew.
#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer_build = true;
#else
constexpr bool thread_sanitizer_build = false;
#endif

/// Calls body(settings) for both warp widths and every order, the random one with a few seeds.
template <typename Body>
void under_every_setting(const Body& body) {
  for (const int width : every_width) {
    for (const Order order : every_order) {
      const std::uint64_t seeds = order == Order::random && !thread_sanitizer_build ? 4 : 1;
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        INFO("warp width ", width, ", order ", static_cast<int>(order), ", seed ", seed);
        body(settings_of(width, order, seed));
      }
    }
  }
}

/// The message of the failure that `body` ends with; "" where it ends without one.
template <typename Body>
std::string failure_of(const Body& body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure.message;
  }
  return "";
}

template <typename Parameters>
std::string fault_of(const Settings& settings, const Kernel& kernel, std::int64_t blocks, int threads, std::int64_t shared_bytes,
                     const Parameters& parameters) {
  return failure_of([&] { run(settings, Launch::of(kernel, blocks, threads, shared_bytes, parameters)); });
}

inline std::uint32_t bits(float value) {
  std::uint32_t result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

/// Whether text has all of these, in this order.
inline bool has_in_order(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t from = 0;
  for (const std::string& part : parts) {
    const std::size_t found = text.find(part, from);
    if (found == std::string::npos) return false;
    from = found + part.size();
  }
  return true;
}

/// A value that differs from thread to thread and rounds when it is added.
inline float uneven(std::int64_t i) { return static_cast<float>((i * 2654435761 % 1000003) - 500000) / 7.0F; }

}  // namespace quire::simt::test
