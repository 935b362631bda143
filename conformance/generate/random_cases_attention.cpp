// Random cases of the index itself, of extend, of attend and of check.
#include <algorithm>

#include "random_cases_index.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

// Poisons what the laws keep from every result: pool slots that no token sees (C8).
void poison_slots(Random& random, const IndexPlan& plan, Json& pool) {
  const std::vector<bool> exposed = plan.exposed_slots();
  for (std::int64_t slot = 0; slot < plan.pool_slots(); ++slot) {
    if (!exposed[at(slot)]) poison_row(random, pool, slot);
  }
}

// Whether token `other`'s key and value reach no token: unseen on its own column, and not stored
// where a token of any lane could see it.
bool is_unseen(const IndexPlan& plan, std::int64_t lane, std::int64_t other) {
  if (plan.tabled() && plan.target(lane, other) >= 0) return false;
  if (plan.tabled() && !plan.drafted) return true;
  for (std::int64_t token = 0; token < plan.seq; ++token) {
    if (plan.sees_token(lane, token, other)) return false;
  }
  return true;
}

void poison_tokens(Random& random, const IndexPlan& plan, Json& values, bool padding_only) {
  const Ints shape = values["shape"];
  const std::int64_t width = count_of(shape) / (plan.batch * plan.seq);
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      if (padding_only ? plan.real(lane, token) : !is_unseen(plan, lane, token)) continue;
      poison_elements(random, values, (lane * plan.seq + token) * width, width);
    }
  }
}

}  // namespace

Json draw_index_case(Random& random) {
  const IndexFeatures features = pick_index_features(random);
  const std::string op = random.pick_of(std::vector<std::string>{"index", "positions", "mask"});
  return {{"op", op}, {"index", draw_index(random, features).json}};
}

Json draw_extend(Random& random) {
  const IndexFeatures features = pick_index_features(random);
  const std::string dtype =
      random.pick_of(std::vector<std::string>{"bool", "i8", "u8", "i16", "i32", "i64", "f16",
                                              "bf16", "f32", "f64", "f8_e4m3fn", "f8_e5m2"});
  const std::int64_t rank = random.pick(4);
  const std::int64_t layout = random.pick(4);
  const bool poisons = random.pick_bool();
  const Style style = pick_style(random);
  const bool has_pool = random.pick(4) > 0;

  const IndexPlan plan = draw_index(random, features);
  Ints tail;
  if (rank == 1) tail = {random.between(1, 4)};
  if (rank == 2) tail = {random.between(1, 2), 3};
  if (rank == 3) tail = {2, 1, random.between(1, 2)};
  Ints shape = {plan.batch, plan.seq};
  shape.insert(shape.end(), tail.begin(), tail.end());
  Json result = {{"op", "extend"}, {"index", plan.json}};
  Json& values = result["values"] = draw_tensor(random, dtype, shape, style);
  if (poisons && plan.tabled() && !plan.drafted) poison_tokens(random, plan, values, false);
  if (layout == 1) pad_rows(random, values);
  if (plan.tabled() || has_pool) {
    Ints pool_shape = {plan.tabled() ? plan.pool_slots() : random.between(1, 3)};
    pool_shape.insert(pool_shape.end(), tail.begin(), tail.end());
    Json& pool = result["pool"] = draw_tensor(random, dtype, pool_shape, style);
    if (poisons && plan.tabled()) poison_slots(random, plan, pool);
    if (layout >= 2) pad_rows(random, pool);
  }
  return result;
}

Json draw_attend(Random& random) {
  const IndexFeatures features = pick_index_features(random);
  const std::vector<std::string> dtypes = {"f16", "bf16", "f32", "f64"};
  const std::string dtype = random.pick_of(dtypes);
  std::string query_dtype = random.pick_of(std::vector<std::string>{"same", "same", "f16", "f32"});
  std::string value_dtype = random.pick_of(std::vector<std::string>{"same", "same", "bf16", "f64"});
  const Ints heads =
      random.pick_of(std::vector<Ints>{{1, 1}, {2, 2}, {2, 1}, {4, 2}, {3, 1}, {3, 3}});
  const std::int64_t softcap = random.pick(4);
  const std::int64_t sinks = random.pick(3);
  const std::int64_t scale = random.pick(5);
  const bool same_width = random.pick(3) == 0;
  const Style style = pick_style(random);
  const bool poisons = random.pick_bool();
  if (query_dtype == "same") query_dtype = dtype;
  if (value_dtype == "same") value_dtype = dtype;

  const IndexPlan plan = draw_index(random, features);
  const std::int64_t depth = random.between(1, 4);
  const std::int64_t value_depth = same_width ? depth : depth == 3 ? 2 : 3;
  Json result = {{"op", "attend"}, {"index", plan.json}};
  Json& q = result["q"] =
      draw_tensor(random, query_dtype, {plan.batch, plan.seq, heads[0], depth}, style);
  Json& k = result["k"] =
      draw_tensor(random, dtype, {plan.batch, plan.seq, heads[1], depth}, style);
  Json& v = result["v"] =
      draw_tensor(random, value_dtype, {plan.batch, plan.seq, heads[1], value_depth}, style);
  if (poisons) {
    poison_tokens(random, plan, q, true);
    poison_tokens(random, plan, k, false);
    poison_tokens(random, plan, v, false);
  }
  if (random.chance(15)) pad_rows(random, *random.one_of(std::vector<Json*>{&q, &k, &v}));
  if (plan.tabled() || random.chance(20)) {
    const std::int64_t slots = plan.tabled() ? plan.pool_slots() : random.between(1, 2);
    Json& k_pool = result["k_pool"] = draw_tensor(random, dtype, {slots, heads[1], depth}, style);
    Json& v_pool = result["v_pool"] =
        draw_tensor(random, value_dtype, {slots, heads[1], value_depth}, style);
    if (poisons && plan.tabled()) {
      poison_slots(random, plan, k_pool);
      poison_slots(random, plan, v_pool);
    }
    if (random.chance(25)) pad_rows(random, k_pool);
    if (random.chance(25)) pad_rows(random, v_pool);
  }
  if (scale > 0) result["scale"] = random.one_of(std::vector<double>{1, 0.5, 0.25, -0.5, 0, 3});
  if (softcap == 1) result["softcap"] = random.one_of(std::vector<double>{1, 2, 30, 0.5});
  if (softcap == 2) result["softcap"] = 50;
  if (sinks > 0) {
    result["sinks"] =
        draw_tensor(random, sinks == 1 ? "f32" : random.one_of(dtypes), {heads[0]}, style);
    if (random.chance(10)) result["sinks"]["data"][0] = random.one_of(Ints{-100, 30});
  }
  return result;
}

}  // namespace quire_tests
