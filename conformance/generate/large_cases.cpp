// Families of large cases.
#include "large_cases.h"

#include "random_cases_parts.h"

namespace quire_tests {

namespace {

constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;

Json drawn(Random& random, const std::string& dtype, const Ints& shape) { return draw_tensor(random, dtype, shape, Style::normals); }

Json gates(Random& random, const Ints& shape) {
  Json data = Json::array();
  for (std::int64_t i = 0; i < count_of(shape); ++i) data.push_back(0.5 + static_cast<double>(random.between(0, 512)) / 1024);
  return tensor("f32", shape, data);
}

Json one_row_index(const Ints& positions, const Ints& table) { return {{"pos", Json::array({positions})}, {"table", Json::array({table})}}; }

Ints range(std::int64_t begin, std::int64_t count) {
  Ints numbers(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = begin + i;
  return numbers;
}

Json wide_extend(Random& random) {
  const std::int64_t tokens = random.between(9, 17), context = tokens + random.between(0, 7), width = random.between(700, 1500);
  return {{"op", "extend"},
          {"index", one_row_index(range(context - tokens, tokens), shuffled(random, context))},
          {"values", drawn(random, "f16", {1, tokens, width})},
          {"pool", drawn(random, "f16", {context, width})}};
}

Json wide_attend(Random& random) {
  const std::int64_t tokens = random.between(5, 9), context = random.between(100, 300), kv = 2, group = random.between(1, 3), size = random.between(40, 72);
  return {{"op", "attend"},
          {"index", one_row_index(range(context - tokens, tokens), shuffled(random, context))},
          {"q", drawn(random, "f32", {1, tokens, kv * group, size})},
          {"k", drawn(random, "f32", {1, tokens, kv, size})},
          {"v", drawn(random, "f32", {1, tokens, kv, size + 3})},
          {"k_pool", drawn(random, "f32", {context, kv, size})},
          {"v_pool", drawn(random, "f32", {context, kv, size + 3})}};
}

Json wide_prefill(Random& random) {
  const std::int64_t tokens = random.between(60, 140), heads = 2, key = random.between(20, 40), value = random.between(41, 60);
  return {{"op", "gdn_prefill"},
          {"q", drawn(random, "f32", {tokens, heads, key})},
          {"k", drawn(random, "f32", {tokens, heads, key})},
          {"v", drawn(random, "f32", {tokens, heads, value})},
          {"g", gates(random, {tokens, heads})},
          {"beta", gates(random, {tokens, heads})},
          {"use_qk_l2norm", true},
          {"cu_seqlens", Ints{0, tokens / 3, tokens}},
          {"output_final_state", true}};
}

// A pool of zeros but for some rows.
Json reserved(Random& random, const std::string& dtype, const Ints& shape, const Ints& rows) {
  Json object = {{"dtype", dtype}, {"shape", shape}, {"rows", Json::object()}};
  Ints row_shape(shape.begin() + 1, shape.end());
  for (const std::int64_t row : rows) object["rows"][std::to_string(row)] = drawn(random, dtype, row_shape)["data"];
  return object;
}

// Slots at both sides of element 2^31 of rows of `width` elements, and where their offsets land when cut to 32 bits.
Ints far_slots(Random& random, std::int64_t width, std::int64_t slots) {
  const std::int64_t edge = two_to_31 / width;
  Ints numbers = {edge - 1, edge, edge + 1, slots - 1, 0, 1, 2};
  random.shuffle(numbers);
  return numbers;
}

Json far_extend(Random& random) {
  const std::int64_t width = 1 << random.between(10, 14), slots = two_to_31 / width + random.between(3, 9);
  const Ints table = far_slots(random, width, slots);
  const std::int64_t tokens = random.between(2, 4);
  return {{"op", "extend"},
          {"index", one_row_index(range(static_cast<std::int64_t>(table.size()) - tokens, tokens), table)},
          {"values", drawn(random, "i8", {1, tokens, width})},
          {"pool", reserved(random, "i8", {slots, width}, table)}};
}

Json far_attend(Random& random) {
  const std::int64_t heads = 4, size = 1 << random.between(8, 10), width = heads * size, slots = two_to_31 / width + random.between(3, 9);
  const Ints table = far_slots(random, width, slots);
  return {{"op", "attend"},
          {"index", one_row_index(range(static_cast<std::int64_t>(table.size()) - 2, 2), table)},
          {"q", drawn(random, "f16", {1, 2, heads, size})},
          {"k", drawn(random, "f16", {1, 2, heads, size})},
          {"v", drawn(random, "f16", {1, 2, heads, size})},
          {"scale", 0.0625},
          {"k_pool", reserved(random, "f16", {slots, heads, size}, table)},
          {"v_pool", reserved(random, "f16", {slots, heads, size}, table)}};
}

Json far_decode(Random& random) {
  const std::int64_t heads = 2, key = 48, value = 64, width = heads * key * value, slots = two_to_31 / width + random.between(3, 9);
  Ints rows = far_slots(random, width, slots);
  const Ints read(rows.begin(), rows.begin() + 3);
  const Ints write(rows.begin() + 3, rows.begin() + 6);
  return {{"op", "gdn_decode"},
          {"q", drawn(random, "f32", {3, 1, heads, key})},
          {"k", drawn(random, "f32", {3, 1, heads, key})},
          {"v", drawn(random, "f32", {3, 1, heads, value})},
          {"g", gates(random, {3, 1, heads})},
          {"beta", gates(random, {3, 1, heads})},
          {"state_pool", reserved(random, "f8_e5m2", {slots, heads, value, key}, read)},
          {"state_indices", integers(random, read)},
          {"output_state_indices", integers(random, write)}};
}

}  // namespace

nlohmann::json wide_case(std::uint64_t number) {
  Random random("wide", number);
  switch (number % 3) {
    case 0: return wide_extend(random);
    case 1: return wide_attend(random);
    default: return wide_prefill(random);
  }
}

nlohmann::json far_case(std::uint64_t number) {
  Random random("far", number);
  switch (number % 3) {
    case 0: return far_extend(random);
    case 1: return far_attend(random);
    default: return far_decode(random);
  }
}

}  // namespace quire_tests
