// Tables and positions of random indices: the constructors make, rows, whole and packed.
#include <algorithm>

#include "random_cases_index.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

std::int64_t outside(Random& random, std::int64_t bound) {
  switch (random.between(0, 5)) {
    case 0:
      return -2;
    case 1:
      return -random.between(3, 90);
    case 2:
      return std::int64_t{1} << random.between(33, 60);
    default:
      return bound + random.between(0, 3);
  }
}

// Distinct shuffled ids, the first `shared` columns of some rows being those of another row.
std::vector<Ints> draw_table(Random& random, std::int64_t rows, std::int64_t width,
                             const Ints& shared_of, const Ints& shared, std::int64_t slots) {
  const Ints ids = shuffled(random, slots);
  std::vector<Ints> table(at(rows));
  std::size_t next = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < width; ++column) table[at(row)].push_back(ids[next++]);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = shared_of[at(row)];
    for (std::int64_t column = 0; from >= 0 && column < std::min(shared[at(row)], width);
         ++column) {
      table[at(row)][at(column)] = table[at(from)][at(column)];
    }
  }
  return table;
}

// Left, right or anywhere: spreads a lane's tokens over its places.
Ints place_tokens(Random& random, const Ints& tokens, std::int64_t seq, int padding) {
  const std::int64_t spare = seq - static_cast<std::int64_t>(tokens.size());
  const std::int64_t pad = random.chance(80) ? -1 : -random.between(1, 9);
  std::vector<bool> empty(at(seq), false);
  if (padding <= 1) {
    std::fill(empty.begin(), empty.begin() + spare, true);
  } else if (padding == 2) {
    std::fill(empty.end() - spare, empty.end(), true);
  } else {
    const Ints places = shuffled(random, seq);
    for (std::int64_t place = 0; place < spare; ++place) empty[at(places[at(place)])] = true;
  }
  Ints lane;
  std::size_t next = 0;
  for (const bool is_empty : empty) lane.push_back(is_empty ? pad : tokens[next++]);
  return lane;
}

void draw_rows(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  plan.context = random.between(1, 7);
  plan.batch = random.between(1, 3);
  Ints lens;
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    lens.push_back(random.chance(20) ? plan.context
                                     : random.between(0, std::min<std::int64_t>(4, plan.context)));
  }
  std::int64_t& first = lens[at(random.between(0, plan.batch - 1))];
  first = std::max<std::int64_t>(1, first);  // A4: not all lengths zero
  plan.seq = *std::max_element(lens.begin(), lens.end());
  plan.rows = plan.batch;
  plan.slots = plan.batch * plan.context;
  if (features.reader == Reader::draft) plan.slots += plan.batch * plan.seq;
  if (features.outside_slots) {
    plan.slots = std::max<std::int64_t>(1, plan.slots - random.between(1, 2));
  }
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    Ints entries;
    for (std::int64_t column = 0; column < plan.context; ++column) {
      entries.push_back(lane * plan.context + column);
    }
    plan.table.push_back(entries);
    Ints tokens;
    for (std::int64_t t = 0; t < lens[at(lane)]; ++t) tokens.push_back(t);
    Ints placed(at(plan.seq - lens[at(lane)]), -1);
    placed.insert(placed.end(), tokens.begin(), tokens.end());
    plan.pos.push_back(placed);
    plan.row.push_back(lane);
  }
  Json rows = {{"context", plan.context}, {"lens", lens}};
  if (!plan.blocks.empty()) {
    rows["every"] = Json::array();
    for (BlockTable& entry : plan.blocks) {
      rows["every"].push_back(entry.size);
      const std::int64_t width = (plan.context + entry.size - 1) / entry.size;
      entry.slots = plan.batch * width;
      for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
        Ints entries;
        for (std::int64_t block = 0; block < width; ++block)
          entries.push_back(lane * width + block);
        entry.table.push_back(entries);
      }
    }
  }
  plan.json["rows"] = rows;
}

void draw_whole(Random& random, IndexPlan& plan, int padding) {
  plan.batch = random.between(1, 3);
  plan.seq = random.between(1, 6);
  plan.lens.resize(at(plan.batch));
  const bool packed = plan.form == Form::packed;
  const bool has_lens = packed || padding > 0;
  Ints lens;
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    std::int64_t left = has_lens && random.chance(70) ? random.between(0, plan.seq) : plan.seq;
    lens.push_back(left);
    Ints placed(at(plan.seq - left), -1);
    while (left > 0 || plan.lens[at(lane)].empty()) {
      // An empty sequence among the packed ones is legal.
      const std::int64_t length = !packed ? left : random.between(random.chance(15) ? 0 : 1, left);
      plan.lens[at(lane)].push_back(std::min(length, left));
      for (std::int64_t t = 0; t < plan.lens[at(lane)].back(); ++t) placed.push_back(t);
      left -= plan.lens[at(lane)].back();
    }
    plan.pos.push_back(placed);
  }
  if (packed) {
    plan.json["packed"] = {{"seq", plan.seq}, {"lens", plan.lens}};
    return;
  }
  plan.json["whole"] = {{"batch", plan.batch}, {"seq", plan.seq}};
  if (has_lens) plan.json["whole"]["lens"] = lens;
}

// A lane's positions: a run, or any distinct positions of its row that it may still store at.
Ints draw_positions(Random& random, Ints& free, std::int64_t most, bool may_be_empty) {
  const auto available = static_cast<std::int64_t>(free.size());
  std::int64_t count = std::min(available, random.chance(40) ? most : random.between(1, most));
  if (may_be_empty && random.chance(15)) count = 0;
  if (count == 0) return {};
  Ints tokens;
  if (random.chance(70)) {
    const std::int64_t spare = available - count;
    const std::int64_t first = random.chance(30)   ? 0
                               : random.chance(30) ? spare
                                                   : random.between(0, spare);
    tokens.assign(free.begin() + first, free.begin() + first + count);
    free.erase(free.begin() + first, free.begin() + first + count);
    return tokens;
  }
  const Ints order = shuffled(random, available);
  for (std::int64_t token = 0; token < count; ++token) tokens.push_back(free[at(order[at(token)])]);
  if (random.chance(50)) std::sort(tokens.begin(), tokens.end());
  for (const std::int64_t token : tokens) free.erase(std::find(free.begin(), free.end(), token));
  return tokens;
}

void draw_lanes(Random& random, const IndexFeatures& features, IndexPlan& plan,
                const Ints& first_own) {
  std::vector<Ints> free(at(plan.rows));
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    for (std::int64_t t = first_own[at(row)]; t < plan.context; ++t) free[at(row)].push_back(t);
  }
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    const std::int64_t row = plan.row[at(lane)];
    const std::int64_t most = features.padding == 0 ? plan.seq : random.between(1, plan.seq);
    Ints tokens;
    if (row >= 0 && row < plan.rows) {
      tokens = draw_positions(random, free[at(row)], most, features.padding > 0);
    } else {
      for (std::int64_t token = 0; token < most; ++token) {
        tokens.push_back(random.between(0, plan.context - 1));
      }
    }
    if (features.past_context && !tokens.empty() && random.chance(60)) {
      tokens.back() = random.chance(85) ? plan.context + random.between(0, 3)
                                        : (std::int64_t{1} << random.between(31, 61));
    }
    plan.pos.push_back(place_tokens(random, tokens, plan.seq, features.padding));
  }
}

void free_columns(Random& random, const IndexFeatures& features, IndexPlan& plan,
                  std::vector<Ints>& table, std::int64_t size, std::int64_t slots) {
  const bool trims = random.chance(50);
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    std::int64_t greatest = -1;
    for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
      if (plan.row[at(lane)] != row) continue;
      for (const std::int64_t t : plan.pos[at(lane)]) greatest = std::max(greatest, t);
    }
    const auto width = static_cast<std::int64_t>(table[at(row)].size());
    for (std::int64_t column = 0; column < width; ++column) {
      if (trims && column > greatest / size) table[at(row)][at(column)] = -1;
      if (features.holes && random.chance(25)) table[at(row)][at(column)] = -1;
      if (features.outside_slots && random.chance(25)) {
        table[at(row)][at(column)] = outside(random, slots);
      }
    }
  }
}

void draw_made(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  const bool has_row = plan.form == Form::with_row;
  plan.batch = random.chance(10) ? 4 : random.between(1, 3);
  plan.seq = random.chance(25) ? 1 : random.between(2, 5);
  plan.context = random.chance(15) ? 1 : random.between(2, 7);
  plan.rows = has_row ? random.between(1, 3) : plan.batch;
  Ints shared_of(at(plan.rows), -1);
  Ints shared(at(plan.rows), 0);
  Ints first_own(at(plan.rows), 0);
  if (features.shared && plan.rows > 1) {
    const Ints order = shuffled(random, plan.rows);
    const std::int64_t source = order[0];
    for (std::int64_t other = 1; other < plan.rows; ++other) {
      if (other > 1 && random.chance(50)) continue;
      const std::int64_t length = random.between(1, plan.context);
      shared_of[at(order[at(other)])] = source;
      shared[at(order[at(other)])] = length;
      first_own[at(order[at(other)])] = length;
      first_own[at(source)] = std::max(first_own[at(source)], length);
    }
  }
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    std::int64_t row = lane;
    if (has_row) {
      row = random.between(0, plan.rows - 1);
      if (features.padding > 0 && random.chance(20)) row = -1;
      if (features.outside_rows && random.chance(40)) row = outside(random, plan.rows);
    }
    plan.row.push_back(row);
  }
  const bool drafts = features.reader == Reader::draft;
  plan.slots =
      plan.rows * plan.context + (drafts ? plan.batch * plan.seq : 0) + random.between(0, 2);
  plan.table = draw_table(random, plan.rows, plan.context, shared_of, shared, plan.slots);
  draw_lanes(random, features, plan, first_own);
  if (drafts) draw_tree(random, features, plan, true);
  free_columns(random, features, plan, plan.table, 1, plan.slots);
  if (features.outside_slots) {
    plan.slots = std::max<std::int64_t>(1, plan.slots - random.between(0, 2));
  }
  for (BlockTable& entry : plan.blocks) {
    std::int64_t width = (plan.context + entry.size - 1) / entry.size;
    if (random.chance(25)) width = std::max<std::int64_t>(1, width + random.between(-1, 1));
    entry.slots = plan.rows * width + random.between(0, 2);
    Ints shared_blocks;
    for (const std::int64_t length : shared) shared_blocks.push_back(length / entry.size);
    entry.table = draw_table(random, plan.rows, width, shared_of, shared_blocks, entry.slots);
    free_columns(random, features, plan, entry.table, entry.size, entry.slots);
  }
  plan.json["pos"] = index_tensor(random, plan.pos);
  plan.json["table"] = index_tensor(random, plan.table);
  if (has_row) {
    plan.json["row"] = plan.row;
    if (random.chance(8)) plan.json["row"] = tensor("i64", {plan.batch}, plan.row);
  }
  if (!plan.blocks.empty()) {
    plan.json["every"] = Json::array();
    for (const BlockTable& entry : plan.blocks) {
      plan.json["every"].push_back(
          {{"m", entry.size}, {"blocks", index_tensor(random, entry.table)}});
    }
  }
}

}  // namespace

void draw_base(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  plan.json = Json::object();
  const bool in_blocks =
      features.reader == Reader::blocks || features.reader == Reader::blocks_select;
  if (plan.tabled() && (in_blocks || random.chance(20))) {
    Ints sizes = {2, 3, 4, 5};
    random.shuffle(sizes);
    sizes.resize(at(random.chance(30) ? 2 : 1));
    for (const std::int64_t size : sizes) plan.blocks.push_back({size, {}, 0});
  }
  if (plan.form == Form::rows) {
    draw_rows(random, features, plan);
  } else if (plan.tabled()) {
    draw_made(random, features, plan);
  } else {
    draw_whole(random, plan, features.padding);
  }
}

}  // namespace quire_tests
