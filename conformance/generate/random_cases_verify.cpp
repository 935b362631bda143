// Random cases of gdn_verify, page_table and check: an index with state pools, pages and duties.
#include <algorithm>

#include "random_cases_gdn.h"
#include "random_cases_index.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

// Replaces one entry of nested rows by another entry of them, or by a number of no use.
void break_entry(Random& random, Json& rows, std::int64_t bound) {
  if (!rows.is_array() || rows.empty() || !rows[0].is_array() || rows[0].empty()) return;
  const auto any_row = [&]() -> Json& {
    return rows[at(random.between(0, static_cast<std::int64_t>(rows.size()) - 1))];
  };
  const auto any_entry = [&](Json& row) -> Json& {
    return row[at(random.between(0, static_cast<std::int64_t>(row.size()) - 1))];
  };
  Json& row = any_row();
  Json& entry = any_entry(row);
  switch (random.between(0, 5)) {
    case 0:
    case 1:
      entry = Json(any_entry(row));
      break;
    case 2:
    case 3:
      entry = Json(any_entry(any_row()));
      break;
    case 4:
      entry = random.one_of(Ints{-1, -3, bound, bound + 2});
      break;
    default:
      entry = random.between(0, bound - 1);
      break;
  }
}

void break_index(Random& random, const IndexPlan& plan, Json& index) {
  if (index.contains("table")) {
    if (random.chance(60)) break_entry(random, index["table"], plan.slots);
    if (random.chance(40)) break_entry(random, index["pos"], plan.context + 2);
    if (index.contains("row") && index["row"].is_array() && random.chance(40)) {
      index["row"][at(random.between(0, plan.batch - 1))] =
          random.one_of(Ints{-1, -2, 0, plan.rows - 1, plan.rows, plan.rows + 4});
    }
    if (index.contains("every") && random.chance(60)) {
      break_entry(random, index["every"][0]["blocks"], plan.blocks[0].slots);
    }
  }
  if (!index.contains("then")) return;
  for (Json& builder : index["then"]) {
    if (!builder.contains("draft")) continue;
    if (random.chance(60)) break_entry(random, builder["draft"]["slots"], plan.slots);
    Json& sees = builder["draft"]["sees"];
    Json& lane = sees[at(random.between(0, static_cast<std::int64_t>(sees.size()) - 1))];
    const auto tokens = static_cast<std::int64_t>(lane.size());
    if (random.chance(60))
      lane[at(random.between(0, tokens - 1))][at(random.between(0, tokens - 1))] = true;
  }
}

}  // namespace

Json draw_verify(Random& random) {
  IndexFeatures features = pick_index_features(random);
  const RuleFeatures rule = pick_rule_features(random, false);
  const bool padded = random.pick_bool();
  const bool poisons = random.pick_bool();
  features.reader = Reader::draft;
  features.parents_only = true;
  if (features.form == Form::whole) features.form = Form::plain;
  if (features.form == Form::packed) features.form = Form::with_row;
  const IndexPlan plan = draw_index(random, features);
  const Heads heads = draw_heads(random, rule, plan.batch * plan.seq > 8);
  Json result = {{"op", "gdn_verify"}, {"index", plan.json}};
  add_tokens(random, rule, heads, {plan.batch, plan.seq}, false, false, result);

  RowPool pool;
  Ints read;
  std::vector<bool> shared(at(plan.batch), false);
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    std::int64_t row = pool.fresh();
    if (padded && random.chance(30)) row = random.chance(60) ? RowPool::none : RowPool::outside;
    if (lane > 0 && row >= 0 && read[0] >= 0 &&
        random.chance(25)) {  // read by several, stored by none
      row = read[0];
      shared[0] = shared[at(lane)] = true;
    }
    read.push_back(row);
  }
  std::vector<Ints> stored(at(plan.batch));
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    bool own = !shared[at(lane)] && random.chance(40);  // the lane's own read row, once
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      const bool stores = plan.real(lane, token) && read[at(lane)] >= 0;
      std::int64_t row = RowPool::none;
      if (!stores) {
        row = random.chance(60) ? RowPool::none : 0;  // stored nowhere, whatever it names
      } else if (own && random.chance(50)) {
        row = read[at(lane)];
        own = false;
      } else if (random.chance(85)) {
        row = pool.fresh();
      } else if (random.chance(50)) {
        row = RowPool::outside;
      }
      stored[at(lane)].push_back(row);
      if (poisons && !plan.real(lane, token)) {
        for (const char* name : {"q", "k", "v"}) {
          Json& values = result[name];
          const Ints shape = values["shape"];
          const std::int64_t width = shape[2] * shape[3];
          poison_elements(random, values, (lane * plan.seq + token) * width, width);
        }
      }
    }
  }
  pool.close(random, random.between(0, 1));
  const Ints rows = pool.resolve(random, read);
  result["state_indices"] = integers(random, rows);
  Json slots = Json::array();
  for (const Ints& lane : stored) slots.push_back(pool.resolve(random, lane));
  result["state_slots"] = slots;
  result["state_pool"] = draw_states(random, rule, heads, pool.size(), rows, poisons);
  if (random.chance(25)) pad_rows(random, result["state_pool"]);
  return result;
}

Json draw_page_table(Random& random) {
  const std::int64_t size = random.pick_of(Ints{2, 3, 4, 64});
  const bool has_row = random.pick_bool();
  const std::int64_t padding = random.pick(3);  // none, lanes, lanes and places within lanes
  const bool scratch = random.pick_bool();
  const std::int64_t then = random.pick(4);
  const bool by_rows = random.pick(4) == 0;

  const std::int64_t batch = random.between(1, 4);
  Json index = Json::object();
  std::int64_t padded_lanes = 0;
  if (by_rows) {
    const std::int64_t context = size == 64 ? 70 : random.between(2, 9);
    Ints lens;
    for (std::int64_t lane = 0; lane < batch; ++lane) {
      const std::int64_t most = size == 64 ? random.one_of(Ints{2, 64, 66}) : context - 1;
      lens.push_back(padding > 0 && random.chance(40) ? 0 : random.between(1, most));
    }
    lens[0] = std::max<std::int64_t>(1, lens[0]);
    index["rows"] = {{"context", context}, {"lens", lens}, {"every", {size}}};
    padded_lanes = std::count(lens.begin(), lens.end(), 0);
  } else {
    const std::int64_t rows = has_row ? random.between(2, 4) : batch;
    const std::int64_t width = random.between(1, 3);
    const std::int64_t seq = random.between(1, 5);
    const Ints order = shuffled(random, rows);
    Ints row;
    std::vector<Ints> pos;
    for (std::int64_t lane = 0; lane < batch; ++lane) {
      const bool owns = !has_row || lane < rows;
      std::int64_t count = random.between(1, std::min(seq, width * size));
      if (!owns || (padding > 0 && random.chance(35))) count = 0;
      // A lane without tokens may name any row, also another lane's or none.
      row.push_back(!has_row    ? lane
                    : count > 0 ? order[at(lane)]
                                : random.one_of(Ints{-1, order[0], rows, order[at(rows - 1)]}));
      std::int64_t first = random.between(0, width * size - count);
      if (random.chance(40)) first = random.chance(50) ? 0 : width * size - count;
      Ints places = shuffled(random, seq);
      places.resize(at(count));
      std::sort(places.begin(), places.end());
      Ints tokens(at(seq), -1);
      for (std::int64_t token = 0; token < count; ++token) {
        const std::int64_t place = padding == 2 ? places[at(token)] : seq - count + token;
        tokens[at(place)] = first + token;
      }
      if (count == 0 && row.back() == -1) {  // padding throughout (A2)
        for (std::int64_t& t : tokens) t = random.between(0, 3);
      }
      padded_lanes += count == 0 ? 1 : 0;
      pos.push_back(tokens);
    }
    const std::int64_t context = random.chance(50) ? 1 : random.between(2, 5);
    const auto draw_ids = [&](std::int64_t columns) {
      std::vector<Ints> ids(at(rows));
      const Ints all = shuffled(random, rows * columns);
      for (std::int64_t place = 0; place < rows * columns; ++place) {
        ids[at(place / columns)].push_back(random.chance(15) ? random.one_of(Ints{-1, 5000, -3})
                                                             : all[at(place)]);
      }
      return ids;
    };
    index["pos"] = index_tensor(random, pos);
    index["table"] = index_tensor(random, draw_ids(context));
    if (has_row) index["row"] = row;
    index["every"] =
        Json::array({{{"m", size}, {"blocks", index_tensor(random, draw_ids(width))}}});
    if (random.chance(40)) {
      index["every"].push_back({{"m", size + 1}, {"blocks", draw_ids(width)}});
    }
  }
  if (then == 1) index["then"] = Json::array({{{"window", 3}}});
  if (then == 2) index["then"] = Json::array({{{"every", size}}});
  if (then == 3 && by_rows) {  // lanes of padding go to position 0 (A11)
    index["then"] = Json::array({{{"advance", true}}});
    padded_lanes = 0;
  }
  Json result = {{"op", "page_table"}, {"index", index}, {"page_size", size}};
  if (scratch) {
    Ints pages;
    for (std::int64_t lane = 0; lane < padded_lanes; ++lane) pages.push_back(100 + 7 * lane);
    random.shuffle(pages);
    result["scratch"] = integers(random, pages);
  }
  return result;
}

Json draw_check(Random& random) {
  const IndexFeatures features = pick_index_features(random);
  const std::int64_t breaks = random.pick(3);
  const std::int64_t slots = random.pick(3);
  const IndexPlan plan = draw_index(random, features);
  Json index = plan.json;
  for (std::int64_t turn = 0; turn < breaks; ++turn) break_index(random, plan, index);
  Json result = {{"op", "check"}, {"index", index}};
  if (slots == 1 && plan.tabled()) result["slots"] = plan.pool_slots();
  if (slots == 2)
    result["slots"] = std::max<std::int64_t>(1, plan.pool_slots() - random.between(0, 3));
  return result;
}

}  // namespace quire_tests
