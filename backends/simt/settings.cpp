// The emulator's environment variables, checked.
#include "settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <variant>

#include "../gpu/runtime.h"
#include "workers.h"

namespace quire::simt {
namespace {

using Read = const char* (*)(const char*);

[[noreturn]] void reject(const char* name, std::string_view given, std::string_view allowed) {
  throw gpu::Failure{QUIRE_UNAVAILABLE, fmt::format("{}: \"{}\"; allowed: {}", name, given, allowed)};
}

std::optional<std::string_view> text_of(Read read, const char* name) {
  const char* text = read(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

template <typename Number>
Number number_of(Read read, const char* name, Number least, Number most, Number otherwise) {
  const auto text = text_of(read, name);
  if (!text) return otherwise;
  Number number{};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || number < least || number > most)
    reject(name, *text, fmt::format("{} to {}", least, most));
  return number;
}

Order order_of(Read read) {
  const auto text = text_of(read, "QUIRE_SIMT_ORDER");
  if (!text || *text == "in-order") return Order::in_order;
  if (*text == "random") return Order::random;
  if (*text == "greedy") return Order::greedy;
  reject("QUIRE_SIMT_ORDER", *text, "in-order, random, greedy");
}

int warp_width_of(Read read) {
  const auto text = text_of(read, "QUIRE_SIMT_WARP");
  if (!text || *text == "32") return 32;
  if (*text == "64") return 64;
  reject("QUIRE_SIMT_WARP", *text, "32, 64");
}

const char* environment(const char* name) { return std::getenv(name); }

std::variant<Settings, gpu::Failure> settings_or_failure() {
  try {
    return settings_from(environment);
  } catch (const gpu::Failure& failure) {
    return failure;
  }
}

}  // namespace

Settings settings_from(Read read) {
  const int machine = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 256U));
  Settings result;
  result.warp_width = warp_width_of(read);
  result.order = order_of(read);
  result.seed = number_of<std::uint64_t>(read, "QUIRE_SIMT_SEED", 0, UINT64_MAX, 0);
  result.grid = number_of<std::int64_t>(read, "QUIRE_SIMT_GRID", 1, Settings::most_blocks, Settings::most_blocks);
  result.devices = number_of<int>(read, "QUIRE_SIMT_DEVICES", 1, Settings::most_devices, 1);
  result.workers = number_of<int>(read, "QUIRE_SIMT_THREADS", 1, 256, machine);
  return result;
}

const Settings& settings() {
  static const std::variant<Settings, gpu::Failure> known = settings_or_failure();
  if (const auto* failure = std::get_if<gpu::Failure>(&known)) throw *failure;
  return std::get<Settings>(known);
}

std::string in_words(const Settings& settings) {
  const std::string order = settings.order == Order::in_order ? "in order"
                            : settings.order == Order::greedy ? "in greedy order"
                                                              : fmt::format("in random order (seed {})", settings.seed);
  const std::string grid = settings.grid == Settings::most_blocks ? "" : fmt::format(", grids of at most {} blocks", settings.grid);
  return fmt::format("warps of {}, threads {}{}, {} worker{} on {}, {} device{}", settings.warp_width, order, grid, settings.workers,
                     settings.workers == 1 ? "" : "s", workers_name(), settings.devices, settings.devices == 1 ? "" : "s");
}

}  // namespace quire::simt
