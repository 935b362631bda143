// What a random index means: who sees which column, where tokens store, which duties hold.
#include "random_cases_index.h"

#include <algorithm>
#include <set>

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

}  // namespace

bool IndexPlan::real(std::int64_t lane, std::int64_t token) const {
  return position(lane, token) >= 0 && !(tabled() && row[at(lane)] == -1);
}

std::int64_t IndexPlan::position(std::int64_t lane, std::int64_t token) const {
  return pos[at(lane)][at(token)];
}

const std::vector<Ints>& IndexPlan::read_table() const {
  for (const BlockTable& entry : blocks) {
    if (entry.size == reads) return entry.table;
  }
  return table;
}

std::int64_t IndexPlan::pool_slots() const {
  for (const BlockTable& entry : blocks) {
    if (entry.size == reads) return entry.slots;
  }
  return slots;
}

std::int64_t IndexPlan::width() const {
  if (!tabled()) return (seq + reads - 1) / reads;
  return static_cast<std::int64_t>(read_table()[0].size());
}

std::int64_t IndexPlan::stands_at(std::int64_t column) const { return column * reads + reads - 1; }

bool IndexPlan::sees_column(std::int64_t lane, std::int64_t token, std::int64_t column) const {
  if (!real(lane, token)) return false;
  const std::int64_t t = position(lane, token);
  const std::int64_t stands = stands_at(column);
  if (stands > t || (window > 0 && stands <= t - window)) return false;
  if (!drafted) return true;
  for (std::int64_t other = 0; other < seq; ++other) {
    if (real(lane, other) && position(lane, other) <= stands) return false;
  }
  return true;
}

bool IndexPlan::sees_token(std::int64_t lane, std::int64_t token, std::int64_t other) const {
  if (!real(lane, token) || !real(lane, other)) return false;
  const std::int64_t t = position(lane, token);
  const std::int64_t stands = position(lane, other);
  if (stands > t || (window > 0 && stands <= t - window)) return false;
  if (drafted) return sees[at(lane)][at(token)][at(other)] != 0;
  return token - t == other - stands;
}

std::int64_t IndexPlan::target(std::int64_t lane, std::int64_t token) const {
  if (!tabled() || !real(lane, token)) return -1;
  const std::int64_t t = position(lane, token);
  std::int64_t slot = -1;
  if (drafted) {
    slot = draft_slots[at(lane)][at(token)];
  } else {
    const std::int64_t sequence = row[at(lane)];
    if (sequence < 0 || sequence >= rows) return -1;
    if ((t + 1) % reads != 0 || t / reads >= width()) return -1;
    slot = read_table()[at(sequence)][at(t / reads)];
  }
  return slot >= 0 && slot < pool_slots() ? slot : -1;
}

std::vector<bool> IndexPlan::exposed_slots() const {
  std::vector<bool> exposed(at(pool_slots()), false);
  if (!tabled()) return exposed;
  for (std::int64_t lane = 0; lane < batch; ++lane) {
    const std::int64_t sequence = row[at(lane)];
    if (sequence < 0 || sequence >= rows) continue;
    for (std::int64_t token = 0; token < seq; ++token) {
      for (std::int64_t column = 0; column < width(); ++column) {
        if (!sees_column(lane, token, column)) continue;
        if (chosen > 0) {
          const Ints& choice = columns[at(lane)][at(token)];
          if (std::find(choice.begin(), choice.end(), column) == choice.end()) continue;
        }
        const std::int64_t slot = read_table()[at(sequence)][at(column)];
        if (slot >= 0 && slot < pool_slots()) exposed[at(slot)] = true;
      }
    }
  }
  // A slot that the call stores whole loses its old bits before any read (C2).
  for (std::int64_t lane = 0; lane < batch; ++lane) {
    for (std::int64_t token = 0; token < seq; ++token) {
      const std::int64_t slot = target(lane, token);
      if (slot >= 0) exposed[at(slot)] = false;
    }
  }
  return exposed;
}

bool IndexPlan::duties_kept() const {
  if (!tabled()) return true;
  std::set<std::int64_t> targets;
  for (std::int64_t lane = 0; lane < batch; ++lane) {
    for (std::int64_t token = 0; token < seq; ++token) {
      const std::int64_t slot = target(lane, token);
      if (slot < 0) continue;
      if (!targets.insert(slot).second) return false;
      for (std::int64_t other = 0; other < rows; ++other) {
        if (!drafted && other == row[at(lane)]) continue;
        const Ints& entries = read_table()[at(other)];
        if (std::find(entries.begin(), entries.end(), slot) != entries.end()) return false;
      }
    }
  }
  return true;
}

IndexFeatures pick_index_features(Random& random) {
  IndexFeatures features;
  features.form =
      random.pick_of(std::vector<Form>{Form::plain, Form::plain, Form::with_row, Form::with_row,
                                       Form::rows, Form::whole, Form::packed});
  features.reader = random.pick_of(
      std::vector<Reader>{Reader::positions, Reader::positions, Reader::select, Reader::blocks,
                          Reader::blocks_select, Reader::draft, Reader::draft});
  features.window = static_cast<int>(random.pick(5));
  features.padding = static_cast<int>(random.pick(4));
  features.shared = random.pick_bool();
  features.holes = random.pick(3) == 0;
  features.outside_slots = random.pick(4) == 0;
  features.outside_rows = random.pick(4) == 0;
  features.past_context = random.pick(4) == 0;
  features.extras = random.pick(3) == 0;
  return features;
}

IndexPlan draw_index(Random& random, const IndexFeatures& features) {
  while (true) {
    IndexPlan plan;
    plan.form = features.form;
    draw_base(random, features, plan);
    draw_chain(random, features, plan);
    if (plan.duties_kept()) return plan;
  }
}

}  // namespace quire_tests
