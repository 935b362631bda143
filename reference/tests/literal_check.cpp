// The literal implementation of F3: check, every obligation that a caller broke.
#include <set>

#include "literal_parts.h"

namespace quire_literal {

namespace {

using Place = std::optional<Int>;

struct Check {
  const Index& x;
  std::optional<Int> pool;  // the pool's size, when given
  Json findings = Json::array();
  std::set<std::string> known;

  const Tensor& table() const { return *table_read(x); }
  Int rows() const { return table().shape[0]; }
  Int width() const { return table().shape[1]; }
  bool in_pool(Int slot) const { return slot >= 0 && (!pool || slot < *pool); }

  // Once per lane, row and column, each null where it has none.
  void report(const std::string& kind, Place lane, Place row, Place column,
              const std::string& message) {
    const auto text = [](Place place) { return place ? Json(*place) : Json(nullptr); };
    const Json place = {text(lane), text(row), text(column)};
    if (!known.insert(kind + place.dump()).second) return;
    findings.push_back({{"kind", kind},
                        {"lane", place[0]},
                        {"row", place[1]},
                        {"column", place[2]},
                        {"message", message}});
  }
};

// Within a row a slot appears once.
void slot_twice_in_row(Check& check, Int r, Int j) {
  const Int slot = int_at(check.table(), {r, j});
  if (!check.in_pool(slot)) return;
  for (Int before = 0; before < j; ++before) {
    if (int_at(check.table(), {r, before}) != slot) continue;
    check.report("slot_twice_in_row", {}, r, j, "an earlier column of the row has this slot");
  }
}

// Two sequences share a slot only at the same column.
void shared_at_two_columns(Check& check, Int r, Int j) {
  const Int slot = int_at(check.table(), {r, j});
  if (!check.in_pool(slot)) return;
  for (Int other = 0; other < r; ++other) {
    for (Int column = 0; column < check.width(); ++column) {
      if (column == j || int_at(check.table(), {other, column}) != slot) continue;
      check.report("shared_at_two_columns", {}, r, j, "an earlier row has it at another column");
    }
  }
}

void table_slot_out_of_pool(Check& check, Int r, Int j) {
  const Int slot = int_at(check.table(), {r, j});
  if (slot == -1 || check.in_pool(slot)) return;
  check.report("slot_out_of_pool", {}, r, j, "the table names a slot outside the pool");
}

// A lane's row is -1 or a row of the table.
void row_out_of_table(Check& check, Int b) {
  const Int row = lane_row(check.x, b);
  if (row >= -1 && row < check.rows()) return;
  check.report("row_out_of_table", b, row, {}, "the lane's row is not in the table");
}

// hole: an unallocated column some token sees. Under a draft, of the table's columns.
void holes(Check& check, Int b, Int i) {
  const Index& x = check.x;
  for (Int c = 0; c < entries(x); ++c) {
    if (!sees_entry(x, b, i, c)) continue;
    const Int column = entry_column(x, b, i, c);
    if (column >= check.width()) continue;
    if (check.in_pool(column_slot(x, b, column))) continue;
    check.report("hole", b, lane_row(x, b), column, "a token sees an unallocated column");
  }
}

// The column that a token stores at: that of its position, or under a draft C + i.
Int store_column(const Check& check, Int b, Int i) {
  if (check.x.draft()) return check.width() + i;
  return position(check.x, b, i) / check.x.reads;
}

// two_writers: two targets of the call are one slot.
void two_writers(Check& check, Int b, Int i) {
  const Index& x = check.x;
  const Int slot = target(x, b, i);
  if (!check.in_pool(slot)) return;
  for (Int lane = 0; lane <= b; ++lane) {
    for (Int token = 0; token < (lane == b ? i : x.seq()); ++token) {
      if (target(x, lane, token) != slot) continue;
      check.report("two_writers", b, lane_row(x, b), store_column(check, b, i),
                   "an earlier token of the call stores at this slot");
    }
  }
}

// write_to_shared: a target that another row names.
void write_to_shared(Check& check, Int b, Int i) {
  const Int slot = target(check.x, b, i);
  if (!check.in_pool(slot)) return;
  for (Int r = 0; r < check.rows(); ++r) {
    if (r == lane_row(check.x, b)) continue;
    for (Int j = 0; j < check.width(); ++j) {
      if (int_at(check.table(), {r, j}) != slot) continue;
      check.report("write_to_shared", b, lane_row(check.x, b), store_column(check, b, i),
                   "another row names the slot this token stores at");
    }
  }
}

// past_context: a position past the last column of the table the index reads.
void past_context(Check& check, Int b, Int i) {
  if (check.x.draft() || position(check.x, b, i) / check.x.reads < check.width()) return;
  check.report("past_context", b, lane_row(check.x, b), {}, "a token past the last column");
}

// A draft's slots are taken from those that no table names.
void draft_slot(Check& check, Int b, Int i) {
  const Int slot = int_at(*check.x.slots, {b, i});
  const Int row = lane_row(check.x, b);
  const Int column = check.width() + i;
  if (slot != -1 && !check.in_pool(slot)) {
    check.report("slot_out_of_pool", b, row, column, "a draft slot outside the pool");
  }
  for (Int r = 0; r < check.rows(); ++r) {
    for (Int j = 0; j < check.width(); ++j) {
      if (!check.in_pool(slot) || int_at(check.table(), {r, j}) != slot) continue;
      check.report("draft_slot_in_table", b, row, column, "a row names a draft's slot");
    }
  }
}

// draft_past_table: positions that A12 clamps.
void draft_past_table(Check& check, Int b, Int i) {
  if (position(check.x, b, i) < check.width()) return;
  check.report("draft_past_table", b, lane_row(check.x, b), check.width() + i,
               "a draft token past the table");
}

// sees_later: a draft token told to see a token of no smaller position, itself apart.
void sees_later(Check& check, Int b, Int i) {
  const Index& x = check.x;
  for (Int j = 0; j < x.seq(); ++j) {
    if (j == i || !real_token(x, b, j) || int_at(*x.sees, {b, i, j}) == 0) continue;
    if (position(x, b, j) < position(x, b, i)) continue;
    check.report("sees_later", b, lane_row(x, b), check.width() + i,
                 "a draft token is told to see one that is not before it");
  }
}

void check_token(Check& check, Int b, Int i) {
  if (!real_token(check.x, b, i)) return;
  holes(check, b, i);
  two_writers(check, b, i);
  write_to_shared(check, b, i);
  past_context(check, b, i);
  if (!check.x.draft()) return;
  draft_slot(check, b, i);
  draft_past_table(check, b, i);
  sees_later(check, b, i);
}

}  // namespace

// F3: reports every obligation a caller broke and never changes a result. The table checked is the
// one the index reads.
void op_check(Fields& fields, Result& result) {
  const Index x = parse_index(fields);
  Check check{x, {}, Json::array(), {}};
  if (fields.has("slots")) {
    check.pool = fields.integer("slots");
    if (*check.pool < 0) reject("slots", "negative");
  }
  if (x.tabled()) {
    for (Int r = 0; r < check.rows(); ++r) {
      for (Int j = 0; j < check.width(); ++j) {
        slot_twice_in_row(check, r, j);
        shared_at_two_columns(check, r, j);
        table_slot_out_of_pool(check, r, j);
      }
    }
    for (Int b = 0; b < x.lanes(); ++b) {
      row_out_of_table(check, b);
      for (Int i = 0; i < x.seq(); ++i) check_token(check, b, i);
    }
  }
  result.json["findings"] = check.findings;
}

}  // namespace quire_literal
