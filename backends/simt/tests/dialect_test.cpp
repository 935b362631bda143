// Each name of the dialect against values by hand, at both warp widths and in every order.
#include <array>
#include <cmath>
#include <limits>

#include "simt_test_helpers.h"

namespace quire::gpu {
namespace {

struct Place {
  std::int64_t thread, threads, block, blocks, width, lane, warp, warps;
};
struct PlaceParameters {
  Place* out;
};
QUIRE_KERNEL(place, PlaceParameters) {
  parameters.out[block() * threads() + thread()] = {thread(),     threads(),   block(),       blocks(),
                                                    warp_width(), warp_lane(), warp_number(), warp_count()};
}

struct FloatParameters {
  const float* in;
  float* out;
  std::int64_t count;
};
QUIRE_KERNEL(sum, FloatParameters) { parameters.out[thread()] = warp_sum(parameters.in[thread()]); }
QUIRE_KERNEL(largest, FloatParameters) { parameters.out[thread()] = warp_max(parameters.in[thread()]); }
// Each lane asks for another lane's value: 5 further, around the end.
QUIRE_KERNEL(rotate, FloatParameters) {
  parameters.out[thread()] = warp_shuffle(parameters.in[thread()], (warp_lane() + 5) % warp_width());
}
// A reduction as kernels do it: warps, then shared memory, then all.
QUIRE_KERNEL(block_sum, FloatParameters) {
  float* const partial = shared_memory<float>();
  for (std::int64_t row = block(); row < parameters.count; row += blocks()) {
    const float of_warp = warp_sum(parameters.in[row * threads() + thread()]);
    if (warp_lane() == 0) partial[warp_number()] = of_warp;
    barrier();
    float total = 0;
    for (int warp = 0; warp < warp_count(); ++warp) total += partial[warp];
    parameters.out[row * threads() + thread()] = total;
    barrier();
  }
}
// The lane is not the same at the two calls, and the values change between them.
QUIRE_KERNEL(many_operations, FloatParameters) {
  float value = parameters.in[thread()];
  for (int i = 0; i < 5; ++i) {
    value = warp_shuffle(value, warp_width() - 1 - warp_lane()) + static_cast<float>(i);
    value = warp_max(value) - value;
    value += warp_sum(value) / 64.0F;
  }
  parameters.out[thread()] = value;
}

struct AnyParameters {
  int holder;
  int* out;
};
QUIRE_KERNEL(any, AnyParameters) {
  const bool first = block_any(thread() == parameters.holder);
  const bool second = block_any(false);
  const bool third = block_any(thread() == 0);
  parameters.out[thread()] = (first ? 1 : 0) + (second ? 2 : 0) + (third ? 4 : 0);
}

struct SharedParameters {
  std::int64_t bytes;
  int* bad;
  std::uintptr_t* address;
};
QUIRE_KERNEL(poisoned, SharedParameters) {
  const auto* const shared = shared_memory<unsigned char>();
  for (std::int64_t i = thread(); i < parameters.bytes; i += threads())
    if (shared[i] != 0xff) store_racing(parameters.bad, 1);
  barrier();
  // What one block leaves there, the next one must not find.
  for (std::int64_t i = thread(); i < parameters.bytes; i += threads()) shared_memory<unsigned char>()[i] = 0;
  if (thread() == 0) store_racing(parameters.address, reinterpret_cast<std::uintptr_t>(shared));
}

struct RaceParameters {
  void* to;
  int bytes;
};
QUIRE_KERNEL(race, RaceParameters) {
  switch (parameters.bytes) {
    case 1: return store_racing(static_cast<std::int8_t*>(parameters.to), static_cast<std::int8_t>(thread()));
    case 2: return store_racing(static_cast<std::int16_t*>(parameters.to), static_cast<std::int16_t>(thread()));
    case 4: return store_racing(static_cast<float*>(parameters.to), static_cast<float>(thread()));
    default: return store_racing(static_cast<std::int64_t*>(parameters.to), std::int64_t{thread()});
  }
}

struct MathParameters {
  const float* in;
  float* out;
};
QUIRE_KERNEL(functions, MathParameters) {
  const float x = parameters.in[thread()];
  float* const out = parameters.out + thread() * 5;
  out[0] = exp_of(x);
  out[1] = log_of(x);
  out[2] = tanh_of(x);
  out[3] = sqrt_of(x);
  out[4] = log1p_of(x);
}

}  // namespace
}  // namespace quire::gpu

namespace quire::simt::test {
namespace {

/// The GPU's tree as each lane does it (gpu/dialect.h): every lane adds what the lane at its number xor the mask has.
std::vector<float> tree(std::vector<float> values) {
  for (std::size_t mask = values.size() / 2; mask > 0; mask /= 2) {
    std::vector<float> next(values.size());
    for (std::size_t lane = 0; lane < values.size(); ++lane) next[lane] = values[lane] + values[lane ^ mask];
    values = next;
  }
  return values;
}

std::vector<float> uneven_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = uneven(static_cast<std::int64_t>(i));
  return values;
}

std::vector<float> slice(const std::vector<float>& values, std::size_t begin, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

template <typename T>
void check_race() {
  under_every_setting([](const Settings& settings) {
    T to = static_cast<T>(-1);
    run(settings, Launch::of(gpu::race(), 1, 64, 0, gpu::RaceParameters{&to, sizeof to}));
    CHECK(to >= 0);
    CHECK(to < 64);
    // In order the last one's remains.
    if (settings.order == Order::in_order) CHECK(to == 63);
  });
}

TEST_CASE("thread, threads, block, blocks and the warp's numbers") {
  under_every_setting([](const Settings& settings) {
    for (const int threads : {64, 128, 192, 256}) {
      std::vector<gpu::Place> out(static_cast<std::size_t>(5 * threads));
      run(settings, Launch::of(gpu::place(), 5, threads, 0, gpu::PlaceParameters{out.data()}));
      for (int block = 0; block < 5; ++block) {
        for (int thread = 0; thread < threads; ++thread) {
          const gpu::Place& place = out[static_cast<std::size_t>(block * threads + thread)];
          REQUIRE(place.thread == thread);
          REQUIRE(place.threads == threads);
          REQUIRE(place.block == block);
          REQUIRE(place.blocks == 5);
          REQUIRE(place.width == settings.warp_width);
          REQUIRE(place.lane == thread % settings.warp_width);
          REQUIRE(place.warp == thread / settings.warp_width);
          REQUIRE(place.warps == threads / settings.warp_width);
        }
      }
    }
  });
}

TEST_CASE("warp_sum has the bits of the GPU's tree, in every thread") {
  const std::vector<float> in = uneven_values(128);
  under_every_setting([&](const Settings& settings) {
    std::vector<float> out(128);
    run(settings, Launch::of(gpu::sum(), 1, 128, 0, gpu::FloatParameters{in.data(), out.data(), 0}));
    const auto width = static_cast<std::size_t>(settings.warp_width);
    bool differs_from_a_loop = false;
    for (std::size_t warp = 0; warp < 128 / width; ++warp) {
      const std::vector<float> expected = tree(slice(in, warp * width, width));
      float loop = 0;
      for (std::size_t lane = 0; lane < width; ++lane) loop += in[warp * width + lane];
      differs_from_a_loop |= bits(loop) != bits(expected[0]);
      for (std::size_t lane = 0; lane < width; ++lane) REQUIRE(bits(out[warp * width + lane]) == bits(expected[lane]));
    }
    // Else the values would not tell one order of adding from another.
    CHECK(differs_from_a_loop);
  });
}

TEST_CASE("warp_sum of infinities and NaNs has one result in every thread") {
  std::vector<float> in(64, 1.0F);
  in[3] = std::numeric_limits<float>::quiet_NaN();
  in[9] = -std::numeric_limits<float>::quiet_NaN();
  in[40] = std::numeric_limits<float>::infinity();
  under_every_setting([&](const Settings& settings) {
    std::vector<float> out(64);
    run(settings, Launch::of(gpu::sum(), 1, 64, 0, gpu::FloatParameters{in.data(), out.data(), 0}));
    CHECK(std::isnan(out[0]));
    const int second = settings.warp_width == 64 ? 0 : 32;
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(bits(out[i]) == bits(out[0]));
      CHECK(bits(out[32 + i]) == bits(out[static_cast<std::size_t>(second)]));
    }
    if (settings.warp_width == 32) CHECK(out[32] == std::numeric_limits<float>::infinity());
  });
}

TEST_CASE("warp_max: NaNs count only where all are, +0 is above -0") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> in(256, -3.0F);
  in[7] = 2.5F;  // threads 0-63
  in[8] = nan;
  for (std::size_t i = 64; i < 128; ++i) in[i] = nan;     // 64-127: none but NaNs
  for (std::size_t i = 128; i < 192; ++i) in[i] = -0.0F;  // 128-191: both zeros
  in[130] = in[170] = 0.0F;
  in[40] = 1.5F;
  under_every_setting([&](const Settings& settings) {
    std::vector<float> out(256);
    run(settings, Launch::of(gpu::largest(), 1, 256, 0, gpu::FloatParameters{in.data(), out.data(), 0}));
    for (std::size_t i = 0; i < 256; ++i) {
      if (i < 32)
        CHECK(out[i] == 2.5F);
      else if (i < 64)
        CHECK(out[i] == (settings.warp_width == 64 ? 2.5F : 1.5F));
      else if (i < 128)
        CHECK(std::isnan(out[i]));
      else if (i < 192)
        CHECK(bits(out[i]) == 0);
      else
        CHECK(out[i] == -3.0F);
    }
  });
}

TEST_CASE("warp_shuffle: each lane from the lane that it names") {
  const std::vector<float> in = uneven_values(128);
  under_every_setting([&](const Settings& settings) {
    std::vector<float> out(128);
    run(settings, Launch::of(gpu::rotate(), 1, 128, 0, gpu::FloatParameters{in.data(), out.data(), 0}));
    const auto width = static_cast<std::size_t>(settings.warp_width);
    for (std::size_t i = 0; i < 128; ++i) CHECK(out[i] == in[i / width * width + (i % width + 5) % width]);
  });
}

TEST_CASE("one operation after another keeps their values apart") {
  const std::vector<float> in = uneven_values(64);
  under_every_setting([&](const Settings& settings) {
    std::vector<float> out(64);
    run(settings, Launch::of(gpu::many_operations(), 1, 64, 0, gpu::FloatParameters{in.data(), out.data(), 0}));
    const auto width = static_cast<std::size_t>(settings.warp_width);
    for (std::size_t begin = 0; begin < 64; begin += width) {
      std::vector<float> values = slice(in, begin, width);
      for (int i = 0; i < 5; ++i) {
        std::vector<float> next(width);
        for (std::size_t lane = 0; lane < width; ++lane) next[lane] = values[width - 1 - lane] + static_cast<float>(i);
        float most = next[0];
        for (const float value : next) most = std::max(most, value);
        for (float& value : next) value = most - value;
        const std::vector<float> sums = tree(next);
        for (std::size_t lane = 0; lane < width; ++lane) values[lane] = next[lane] + sums[lane] / 64.0F;
      }
      for (std::size_t lane = 0; lane < width; ++lane) REQUIRE(bits(out[begin + lane]) == bits(values[lane]));
    }
  });
}

TEST_CASE("barrier: a block's reduction, row after row through one piece of shared memory") {
  constexpr std::size_t rows = 23;
  const std::vector<float> in = uneven_values(rows * 256);
  under_every_setting([&](Settings settings) {
    settings.grid = 4;
    std::vector<float> out(rows * 256);
    const auto warps = static_cast<std::size_t>(256 / settings.warp_width);
    run(settings, Launch::of(gpu::block_sum(), rows, 256, static_cast<std::int64_t>(warps * sizeof(float)),
                             gpu::FloatParameters{in.data(), out.data(), rows}));
    for (std::size_t row = 0; row < rows; ++row) {
      float total = 0;
      for (std::size_t warp = 0; warp < warps; ++warp) total += tree(slice(in, row * 256 + warp * 256 / warps, 256 / warps))[0];
      for (std::size_t i = 0; i < 256; ++i) REQUIRE(bits(out[row * 256 + i]) == bits(total));
    }
  });
}

TEST_CASE("block_any holds for all threads or for none, each time anew") {
  under_every_setting([](const Settings& settings) {
    for (const int holder : {-1, 0, 31, 100, 191}) {
      std::vector<int> out(192);
      run(settings, Launch::of(gpu::any(), 1, 192, 0, gpu::AnyParameters{holder, out.data()}));
      for (const int value : out) CHECK(value == (holder < 0 ? 4 : 5));
    }
  });
}

TEST_CASE("shared memory is 0xFF at each block's start, of any size, aligned to 16 bytes") {
  under_every_setting([](const Settings& settings) {
    for (const std::int64_t bytes : {0, 1, 17, 64, 4100, 48 * 1024}) {
      int bad = 0;
      std::uintptr_t address = 1;
      run(settings_of(settings.warp_width, settings.order, settings.seed),
          Launch::of(gpu::poisoned(), 1, 64, bytes, gpu::SharedParameters{bytes, &bad, &address}));
      Settings alone = settings;
      alone.workers = 1;
      run(alone, Launch::of(gpu::poisoned(), 7, 64, bytes, gpu::SharedParameters{bytes, &bad, &address}));
      CHECK(bad == 0);
      CHECK(address % 16 == 0);
    }
  });
}

TEST_CASE("store_racing: one of the values remains, for 1, 2, 4 and 8 bytes") {
  check_race<std::int8_t>();
  check_race<std::int16_t>();
  check_race<float>();
  check_race<std::int64_t>();
}

TEST_CASE("exp_of, log_of, tanh_of, sqrt_of, log1p_of are float functions") {
  std::vector<float> in(64);
  for (std::size_t i = 0; i < 64; ++i) in[i] = static_cast<float>(i + 1) / 16.0F;
  std::vector<float> out(64 * 5);
  run(Settings{}, Launch::of(gpu::functions(), 1, 64, 0, gpu::MathParameters{in.data(), out.data()}));
  for (std::size_t i = 0; i < 64; ++i) {
    const double x = in[i];
    const double expected[] = {std::exp(x), std::log(x), std::tanh(x), std::sqrt(x), std::log1p(x)};
    for (std::size_t f = 0; f < 5; ++f) CHECK(std::fabs(out[i * 5 + f] - expected[f]) <= 2e-7 * std::fabs(expected[f]));
  }
}

}  // namespace
}  // namespace quire::simt::test
