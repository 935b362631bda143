// check: one short function per kind of broken obligation (law F3).
#include <quire/check.h>
#include <quire/index_view.h>

#include <fmt/format.h>

#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace quire {

namespace {

class Checker {
 public:
  Checker(const IndexView& view, std::optional<std::int64_t> slots) : view_(view), slots_(slots) {}

  std::vector<Finding> run() {
    if (!view_.is_tabled()) return {};
    rows_of_lanes();
    entries_of_the_table();
    targets();
    holes();
    positions_past_the_table();
    if (view_.is_draft()) draft_tokens();
    return std::move(findings_);
  }

 private:
  using Place = std::optional<std::int64_t>;

  void report(std::string_view kind, Place lane, Place row, Place column, std::string message) {
    // Once per kind, lane, row and column: two tokens of one lane may break an obligation at one column.
    const auto number = [](Place place) { return place ? *place : std::numeric_limits<std::int64_t>::min(); };
    if (!reported_.emplace(kind, number(lane), number(row), number(column)).second) return;
    findings_.push_back({std::string(kind), lane, row, column, std::move(message)});
  }
  bool in_pool(std::int64_t slot) const { return slot >= 0 && (!slots_ || slot < *slots_); }
  // Neither a slot of the pool nor the -1 of an unallocated column.
  bool is_out_of_pool(std::int64_t slot) const { return slot != -1 && !in_pool(slot); }
  std::string pool_text() const { return slots_ ? fmt::format("a pool of {} slots", *slots_) : "any pool"; }

  void rows_of_lanes() {
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      const std::int64_t row = view_.row(b);
      if (row == -1 || view_.row_in_table(b)) continue;
      report("row_out_of_table", b, row, std::nullopt, fmt::format("lane {} names row {} of {} rows", b, row, view_.rows()));
    }
  }

  // Columns at which earlier rows name a slot: the first found, and whether there is another.
  struct Columns {
    std::int64_t first;
    bool several = false;
    void add(std::int64_t column) { several |= column != first; }
  };

  void entries_of_the_table() {
    std::unordered_map<std::int64_t, Columns> earlier;
    for (std::int64_t r = 0; r < view_.rows(); ++r) {
      std::unordered_map<std::int64_t, std::int64_t> here;  // slot -> its first column in this row
      for (std::int64_t j = 0; j < view_.table_columns(); ++j) {
        const std::int64_t slot = view_.entry(r, j);
        if (is_out_of_pool(slot)) report("slot_out_of_pool", std::nullopt, r, j, fmt::format("slot {} is outside {}", slot, pool_text()));
        if (!in_pool(slot)) continue;
        const auto [first, is_new] = here.try_emplace(slot, j);
        if (is_new) rows_naming_[slot].push_back(r);
        if (!is_new) {
          report("slot_twice_in_row", std::nullopt, r, j, fmt::format("slot {} stands at columns {} and {} of row {}", slot, first->second, j, r));
        }
        const auto before = earlier.find(slot);
        if (before != earlier.end() && (before->second.first != j || before->second.several)) {
          report("shared_at_two_columns", std::nullopt, r, j, fmt::format("an earlier row names slot {} at another column than {}", slot, j));
        }
      }
      for (std::int64_t j = 0; j < view_.table_columns(); ++j) {
        const std::int64_t slot = view_.entry(r, j);
        if (in_pool(slot)) earlier.try_emplace(slot, Columns{j}).first->second.add(j);
      }
    }
  }

  void targets() {
    std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> writer;  // slot -> lane and place
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      for (std::int64_t i = 0; i < view_.seq(); ++i) {
        const std::int64_t slot = view_.target(b, i);
        if (!in_pool(slot)) continue;
        const std::int64_t column = view_.target_column(b, i);
        const auto [first, is_new] = writer.try_emplace(slot, b, i);
        if (!is_new) {
          report("two_writers", b, view_.row(b), column,
                 fmt::format("slot {} is the target of token {} of lane {} too", slot, first->second.second, first->second.first));
        }
        const auto naming = rows_naming_.find(slot);
        if (naming == rows_naming_.end()) continue;
        for (const std::int64_t r : naming->second) {
          if (r == view_.row(b)) continue;
          report("write_to_shared", b, view_.row(b), column, fmt::format("slot {} is named by row {} too", slot, r));
          break;
        }
      }
    }
  }

  bool is_hole(std::int64_t b, std::int64_t column) const { return !in_pool(view_.slot(b, column)); }

  void holes() {
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      std::vector<bool> seen(static_cast<std::size_t>(view_.table_columns()));
      for (std::int64_t i = 0; i < view_.seq(); ++i) {
        const ColumnRange range = view_.table_range(b, i);
        const auto mark = [&](std::int64_t column) {
          if (column >= range.begin && column < range.end) seen[static_cast<std::size_t>(column)] = true;
        };
        for (std::int64_t c = 0; c < view_.choices(); ++c) mark(view_.choice(b, i, c));
        for (std::int64_t j = range.begin; !view_.is_selecting() && j < range.end; ++j) mark(j);
      }
      for (std::int64_t j = 0; j < view_.table_columns(); ++j) {
        if (seen[static_cast<std::size_t>(j)] && is_hole(b, j)) {
          report("hole", b, view_.row(b), j, fmt::format("column {} is unallocated and a token of lane {} sees it", j, b));
        }
      }
    }
  }

  void positions_past_the_table() {
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      for (std::int64_t i = 0; i < view_.seq(); ++i) {
        const std::int64_t t = view_.position(b, i);
        if (t < 0 || t / view_.block_size() < view_.table_columns()) continue;
        if (view_.is_draft()) {
          report("draft_past_table", b, view_.row(b), view_.table_columns() + i,
                 fmt::format("position {} lies past the table's {} columns", t, view_.table_columns()));
        } else {
          report("past_context", b, view_.row(b), std::nullopt, fmt::format("position {} lies past the table's {} columns", t, view_.table_columns()));
        }
      }
    }
  }

  void draft_tokens() {
    for (std::int64_t b = 0; b < view_.batch(); ++b) {
      for (std::int64_t i = 0; i < view_.seq(); ++i) {
        if (!view_.is_real(b, i)) continue;
        const std::int64_t column = view_.table_columns() + i;
        const std::int64_t slot = view_.draft_slot(b, i);
        if (is_out_of_pool(slot)) report("slot_out_of_pool", b, view_.row(b), column, fmt::format("slot {} is outside {}", slot, pool_text()));
        if (in_pool(slot) && rows_naming_.contains(slot)) {
          report("draft_slot_in_table", b, view_.row(b), column, fmt::format("slot {} is named by row {} of the table", slot, rows_naming_[slot].front()));
        }
        for (std::int64_t j = 0; j < view_.seq(); ++j) {
          if (j == i || !view_.is_real(b, j) || !view_.draft_sees(b, i, j) || view_.position(b, j) < view_.position(b, i)) continue;
          report("sees_later", b, view_.row(b), column,
                 fmt::format("token {} at position {} is told to see token {} at position {}", i, view_.position(b, i), j, view_.position(b, j)));
          break;
        }
      }
    }
  }

  const IndexView& view_;
  std::optional<std::int64_t> slots_;
  std::vector<Finding> findings_;
  std::set<std::tuple<std::string_view, std::int64_t, std::int64_t, std::int64_t>> reported_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> rows_naming_;
};

}  // namespace

std::vector<Finding> check(const Index& index, std::optional<std::int64_t> slots) {
  if (slots && *slots < 0) reject("slots", fmt::format("{}", *slots), "0 or more");
  if (!index.device().is_host()) throw Error(ErrorCode::unsupported, "index", "index: its tensors lie on a device; allowed: host tensors");
  const IndexAbi abi(index);
  return Checker(IndexView(*abi.get()), slots).run();
}

}  // namespace quire
