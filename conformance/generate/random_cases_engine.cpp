// Random programs of a small engine on a key and value cache: allocate, feed, share, draft, retire.
#include "random_cases_engine.h"

#include <algorithm>

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

class Engine {
 public:
  Engine(Random& random, bool attends)
      : random_(random),
        attends_(attends),
        rows_(random.between(2, 3)),
        context_(random.between(4, 8)) {
    slots_ = rows_ * context_ + random.between(2, 5);
    free_ = shuffled(random, slots_);
    table_.assign(at(rows_), Ints(at(context_), -1));
    length_.assign(at(rows_), 0);
    window_ = random.chance(40) ? random.between(2, 4) : 0;
    dtype_ = random.one_of(attends ? std::vector<std::string>{"f32", "f16", "bf16", "f64"}
                                   : std::vector<std::string>{"f32", "i32", "f8_e5m2", "u8"});
    style_ = random.one_of(std::vector<Style>{Style::exact, Style::normals});
  }

  Json run() {
    const std::int64_t calls = random_.between(3, 6);
    feed();
    while (calls_ < calls) {
      switch (random_.between(0, 5)) {
        case 0:
          share();
          break;
        case 1:
          retire();
          break;
        case 2:
          draft();
          break;
        default:
          feed();
          break;
      }
    }
    return {{"steps", steps_}};
  }

 private:
  struct Lane {
    std::int64_t row = -1;
    Ints pos;
  };

  std::int64_t take() {
    const std::int64_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  bool is_named(std::int64_t slot) const {
    return std::any_of(table_.begin(), table_.end(), [slot](const Ints& row) {
      return std::find(row.begin(), row.end(), slot) != row.end();
    });
  }

  // A slot goes back when no sequence names it any more; it is soon used again.
  void release(std::int64_t row, std::int64_t column) {
    const std::int64_t slot = table_[at(row)][at(column)];
    table_[at(row)][at(column)] = -1;
    if (slot >= 0 && !is_named(slot)) free_.push_back(slot);
  }

  void retire() {
    const std::int64_t row = random_.between(0, rows_ - 1);
    for (std::int64_t column = 0; column < context_; ++column) release(row, column);
    length_[at(row)] = 0;
  }

  // A fork: the same slots at the same columns, after the same tokens.
  void share() {
    const std::int64_t source = random_.between(0, rows_ - 1);
    const std::int64_t other = (source + 1) % rows_;
    if (length_[at(source)] == 0 || length_[at(other)] > 0) return;
    length_[at(other)] = random_.between(1, length_[at(source)]);
    for (std::int64_t column = 0; column < length_[at(other)]; ++column) {
      table_[at(other)][at(column)] = table_[at(source)][at(column)];
    }
  }

  // Columns below the window of every token to come.
  void evict() {
    for (std::int64_t row = 0; window_ > 0 && row < rows_; ++row) {
      for (std::int64_t column = 0; column <= length_[at(row)] - window_; ++column) {
        if (random_.chance(70)) release(row, column);
      }
    }
  }

  void feed() {
    std::vector<Lane> lanes;
    for (const std::int64_t row : shuffled(random_, rows_)) {
      Lane lane;
      lane.row = row;
      std::int64_t count = std::min(random_.between(1, 3), context_ - length_[at(row)]);
      count = std::min(count, static_cast<std::int64_t>(free_.size()));
      if (random_.chance(25)) count = 0;
      for (std::int64_t token = 0; token < count; ++token) {
        const std::int64_t t = length_[at(row)]++;
        table_[at(row)][at(t)] = take();
        lane.pos.push_back(t);
      }
      // A lane of padding, by its row or by its positions.
      if (count == 0 && random_.chance(50)) lane.row = -1;
      if (count > 0 || random_.chance(40)) lanes.push_back(lane);
    }
    if (lanes.empty()) return retire();
    call(lanes, Json::array());
    evict();
  }

  void draft() {
    const std::int64_t row = random_.between(0, rows_ - 1);
    const std::int64_t base = length_[at(row)];
    const std::int64_t count =
        std::min(random_.between(2, 4), static_cast<std::int64_t>(free_.size()));
    if (count < 1 || base == 0 || base >= context_) return;
    Ints parents;
    Lane lane;
    lane.row = row;
    Ints slots;
    Json sees = Json::array();
    for (std::int64_t node = 0; node < count; ++node) {
      parents.push_back(random_.between(-1, node - 1));
      lane.pos.push_back(parents.back() < 0 ? base : lane.pos[at(parents.back())] + 1);
      slots.push_back(take());
      Json seen(at(count), Json(false));
      for (std::int64_t other = node; other >= 0; other = parents[at(other)])
        seen[at(other)] = true;
      sees.push_back(seen);
    }
    const Json builder = {
        {"draft", {{"slots", Json::array({slots})}, {"sees", Json::array({sees})}}}};
    call({lane}, Json::array({builder}));
    // Keep one path: its slots become the columns of its positions; nothing is copied.
    std::int64_t kept = random_.between(-1, count - 1);
    while (kept >= 0 && lane.pos[at(kept)] >= context_) kept = parents[at(kept)];
    if (kept >= 0) length_[at(row)] = lane.pos[at(kept)] + 1;
    for (; kept >= 0; kept = parents[at(kept)]) {
      table_[at(row)][at(lane.pos[at(kept)])] = slots[at(kept)];
    }
    for (const std::int64_t slot : slots) {
      if (!is_named(slot)) free_.push_back(slot);
    }
    random_.shuffle(free_);
  }

  void call(const std::vector<Lane>& lanes, Json then) {
    std::size_t seq = 1;
    for (const Lane& lane : lanes) seq = std::max(seq, lane.pos.size());
    std::vector<Ints> pos;
    Ints row;
    for (const Lane& lane : lanes) {
      Ints padded(seq - lane.pos.size(), -1);
      padded.insert(padded.end(), lane.pos.begin(), lane.pos.end());
      pos.push_back(padded);
      row.push_back(lane.row);
    }
    if (window_ > 0) then.push_back({{"window", window_}});
    Json index = {{"pos", pos}, {"table", table_}, {"row", row}};
    if (!then.empty()) index["then"] = then;
    if (random_.chance(15)) steps_.push_back({{"op", "mask"}, {"index", index}});
    if (random_.chance(15))
      steps_.push_back({{"op", "check"}, {"index", index}, {"slots", slots_}});
    const std::string name = "call" + std::to_string(calls_);
    Json step = {{"op", attends_ ? "attend" : "extend"}, {"index", index}, {"as", name}};
    const auto batch = static_cast<std::int64_t>(lanes.size());
    const auto tokens = static_cast<std::int64_t>(seq);
    if (attends_) {
      step["q"] = draw_tensor(random_, dtype_, {batch, tokens, 2, 3}, style_);
      step["k"] = draw_tensor(random_, dtype_, {batch, tokens, 1, 3}, style_);
      step["v"] = draw_tensor(random_, dtype_, {batch, tokens, 1, 2}, style_);
      add_pool(step, "k_pool", {slots_, 1, 3});
      add_pool(step, "v_pool", {slots_, 1, 2});
    } else {
      step["values"] = draw_tensor(random_, dtype_, {batch, tokens, 2}, style_);
      add_pool(step, "pool", {slots_, 2});
    }
    steps_.push_back(step);
    ++calls_;
  }

  // The first call brings the pools, full of poison: nothing is read that no call stored. The
  // others name an earlier call's, all the same memory.
  void add_pool(Json& step, const std::string& name, const Ints& shape) {
    if (calls_ > 0) {
      const std::int64_t earlier = random_.chance(70) ? calls_ - 1 : random_.between(0, calls_ - 1);
      step[name] = {{"ref", "call" + std::to_string(earlier) + "." + name}};
      return;
    }
    step[name] = draw_tensor(random_, dtype_, shape, style_);
    for (std::int64_t slot = 0; slot < shape[0]; ++slot) poison_row(random_, step[name], slot);
  }

  Random& random_;
  bool attends_;
  std::int64_t rows_;
  std::int64_t context_;
  std::int64_t slots_ = 0;
  std::int64_t window_ = 0;
  std::int64_t calls_ = 0;
  std::string dtype_;
  Style style_ = Style::exact;
  Ints free_;
  std::vector<Ints> table_;
  Ints length_;
  Json steps_ = Json::array();
};

}  // namespace

Json draw_engine(Random& random, bool attends) { return Engine(random, attends).run(); }

}  // namespace quire_tests
