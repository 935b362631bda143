// Chains of builders of random indices: window, select, every, draft, advance.
#include <algorithm>

#include "random_cases_index.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

void add(IndexPlan& plan, const char* builder, const Json& value) {
  plan.json["then"].push_back({{builder, value}});
}

void apply_window(Random& random, IndexPlan& plan, int kind) {
  if (kind == 0) return;
  const Ints sizes = {1, 2, random.between(2, 4),
                      random.chance(70) ? plan.context + plan.seq : std::int64_t{1} << 60};
  plan.window = sizes[at(kind - 1)];
  add(plan, "window", plan.window);
}

void apply_every(IndexPlan& plan, std::int64_t size) {
  plan.reads = size;
  add(plan, "every", size);
}

void apply_blocks(Random& random, IndexPlan& plan) {
  apply_every(plan, plan.tabled() ? random.one_of(plan.blocks).size : random.between(2, 4));
}

void apply_select(Random& random, IndexPlan& plan) {
  plan.chosen = random.chance(20) ? plan.width() + 1 : random.between(1, 3);
  plan.columns.assign(at(plan.batch), std::vector<Ints>(at(plan.seq)));
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      Ints& choice = plan.columns[at(lane)][at(token)];
      const std::int64_t own = std::max<std::int64_t>(0, plan.position(lane, token)) / plan.reads;
      for (std::int64_t place = 0; place < plan.chosen; ++place) {
        std::int64_t column = random.between(0, plan.width() - 1);
        if (random.chance(40)) column = std::max<std::int64_t>(0, own - random.between(0, 2));
        if (random.chance(10)) column = random.one_of(Ints{-1, -4, plan.width(), plan.width() + 3});
        if (place > 0 && random.chance(10)) column = choice.back();  // read twice (B5)
        choice.push_back(column);
      }
    }
  }
  add(plan, "select", plan.columns);
}

// What a lane's tokens see of each other where their positions were not drawn as a tree.
void see_earlier(Random& random, IndexPlan& plan) {
  plan.sees.assign(at(plan.batch), std::vector<Ints>(at(plan.seq), Ints(at(plan.seq), 0)));
  for (auto& lane : plan.sees) {
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      for (std::int64_t other = 0; other <= token; ++other) {
        lane[at(token)][at(other)] = other == token || random.chance(75) ? 1 : 0;
      }
    }
  }
}

void apply_draft(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  const bool fits = static_cast<std::int64_t>(plan.sees.size()) == plan.batch &&
                    static_cast<std::int64_t>(plan.sees[0].size()) == plan.seq;
  if (!fits) see_earlier(random, plan);
  std::vector<bool> named(at(plan.slots), false);
  for (const Ints& entries : plan.table) {
    for (const std::int64_t slot : entries) {
      if (slot >= 0 && slot < plan.slots) named[at(slot)] = true;
    }
  }
  Ints free;
  for (const std::int64_t slot : shuffled(random, plan.slots)) {
    if (!named[at(slot)]) free.push_back(slot);
  }
  plan.draft_slots.assign(at(plan.batch), Ints(at(plan.seq), -1));
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      std::int64_t& slot = plan.draft_slots[at(lane)][at(token)];
      if (!plan.real(lane, token)) {
        // Padding stores nothing, whatever slot it names.
        slot = random.chance(60) ? -1 : random.between(0, plan.slots - 1);
      } else if (features.outside_slots && random.chance(20)) {
        slot = random.one_of(Ints{-2, plan.slots, plan.slots + 2, std::int64_t{1} << 40});
      } else if (!free.empty() && !random.chance(10)) {
        slot = free.back();
        free.pop_back();
      }
    }
  }
  plan.drafted = true;
  Json sees = Json::array();
  for (const auto& lane : plan.sees) {
    Json rows = Json::array();
    for (const Ints& row : lane) {
      Json entries = Json::array();
      for (const std::int64_t value : row) entries.push_back(value != 0);
      rows.push_back(entries);
    }
    sees.push_back(rows);
  }
  add(plan, "draft", {{"slots", index_tensor(random, plan.draft_slots)}, {"sees", sees}});
}

void apply_advance(IndexPlan& plan) {
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    std::int64_t next = 0;
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      if (plan.real(lane, token)) next = std::max(next, plan.position(lane, token) + 1);
    }
    plan.pos[at(lane)] = {next};
  }
  plan.seq = 1;
  plan.chosen = 0;
  plan.columns.clear();
  plan.drafted = false;
  plan.sees.clear();
  add(plan, "advance", true);
}

// Builders that a later one replaces, and identities.
void apply_extras(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  if (random.chance(40)) apply_window(random, plan, static_cast<int>(random.between(1, 4)));
  if (plan.tabled() && random.chance(50)) {
    if (random.chance(30)) {
      apply_draft(random, features, plan);
      if (random.chance(40)) apply_every(plan, 1);
    } else if (random.chance(40)) {
      apply_select(random, plan);
    }
    apply_advance(plan);
    if (random.chance(20)) apply_advance(plan);
  }
  if (random.chance(30)) apply_every(plan, 1);  // A10: that index
}

void apply_reader(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  const bool packed = plan.form == Form::packed;
  switch (features.reader) {
    case Reader::positions:
      break;
    case Reader::blocks_select:
    case Reader::blocks:
      if (!packed) apply_blocks(random, plan);
      if (features.reader == Reader::blocks) break;
      [[fallthrough]];
    case Reader::select:
      if (features.extras && random.chance(40)) apply_select(random, plan);
      apply_select(random, plan);
      break;
    case Reader::draft:
      if (!plan.tabled()) break;
      if (features.extras && random.chance(40)) apply_draft(random, features, plan);
      apply_draft(random, features, plan);
      break;
  }
}

}  // namespace

void draw_tree(Random& random, const IndexFeatures& features, IndexPlan& plan, bool positions) {
  plan.sees.assign(at(plan.batch), std::vector<Ints>(at(plan.seq), Ints(at(plan.seq), 0)));
  for (std::int64_t lane = 0; lane < plan.batch; ++lane) {
    std::vector<Ints>& sees = plan.sees[at(lane)];
    std::int64_t base = random.between(0, plan.context);
    if (random.chance(20)) base = random.chance(50) ? 0 : plan.context;
    if (features.past_context) base = plan.context + random.between(0, 2);
    const std::int64_t kind = random.between(0, 3);  // chain, tree, forest of two roots, bush
    const bool permuted = random.chance(20);
    Ints order = shuffled(random, plan.seq);
    if (!permuted) std::sort(order.begin(), order.end());
    Ints pos(at(plan.seq), 0);
    Ints parents;
    for (std::int64_t node = 0; node < plan.seq; ++node) {
      std::int64_t parent = node - 1;
      if (kind == 1 && node > 1) parent = random.between(0, node - 1);
      if (kind == 2 && node > 1)
        parent = random.between(std::max<std::int64_t>(0, node - 3), node - 1);
      if (kind == 2 && node == 1) parent = -1;
      if (kind == 3 && node > 0) parent = random.chance(25) ? -1 : random.between(0, node - 1);
      parents.push_back(parent);
      const std::int64_t token = order[at(node)];
      pos[at(token)] = parent < 0 ? base : pos[at(order[at(parent)])] + 1;
      for (std::int64_t seen = node; seen >= 0; seen = parents[at(seen)]) {
        sees[at(token)][at(order[at(seen)])] = 1;
      }
    }
    if (random.chance(15)) {  // a token that does not see itself, or an ancestor
      sees[at(random.between(0, plan.seq - 1))][at(random.between(0, plan.seq - 1))] = 0;
    }
    const bool arbitrary = !features.parents_only && random.chance(25);
    for (std::int64_t token = 0; arbitrary && token < plan.seq; ++token) {
      for (std::int64_t other = 0; other < plan.seq; ++other) {
        sees[at(token)][at(other)] = random.chance(50) ? 1 : 0;
      }
    }
    if (!positions) continue;
    for (std::int64_t token = 0; token < plan.seq; ++token) {
      const bool pads = features.padding == 1   ? token == 0
                        : features.padding == 2 ? token == plan.seq - 1
                                                : features.padding == 3;
      if (pads && random.chance(features.padding == 3 ? 30 : 60)) pos[at(token)] = -1;
    }
    plan.pos[at(lane)] = pos;
  }
}

void draw_chain(Random& random, const IndexFeatures& features, IndexPlan& plan) {
  plan.json["then"] = Json::array();
  if (features.extras) apply_extras(random, features, plan);
  const bool window_first = random.chance(50);
  if (window_first) apply_window(random, plan, features.window);
  apply_reader(random, features, plan);
  if (!window_first) apply_window(random, plan, features.window);
  if (features.extras && random.chance(30)) apply_every(plan, plan.reads);
  if (plan.json["then"].empty() && random.chance(80)) plan.json.erase("then");
}

}  // namespace quire_tests
