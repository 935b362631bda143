// The literal implementation of F2: gdn_verify, the recurrence under a draft.
#include <algorithm>

#include "literal_parts.h"

namespace quire_literal {

namespace {

// F2: among the real tokens j it sees (sees[b,i,j]) with p_j < p_i, the one of greatest position,
// the window playing no part; two of that position are an error.
std::optional<Int> parent(const Index& x, Int b, Int i) {
  std::optional<Int> best;
  bool twice = false;
  for (Int j = 0; j < x.seq(); ++j) {
    if (!real_token(x, b, j) || int_at(*x.sees, {b, i, j}) == 0) continue;
    if (position(x, b, j) >= position(x, b, i)) continue;
    if (!best || position(x, b, j) > position(x, b, *best)) {
      best = j;
      twice = false;
    } else if (position(x, b, j) == position(x, b, *best)) {
      twice = true;
    }
  }
  if (twice) reject("index", "two parents of one position");
  return best;
}

// Parents stand before their children.
std::vector<Int> by_position(const Index& x, Int b) {
  std::vector<Int> order;
  for (Int i = 0; i < x.seq(); ++i) {
    if (real_token(x, b, i)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](Int i, Int j) { return position(x, b, i) < position(x, b, j); });
  return order;
}

struct Verify {
  Index x;
  Shared pool;
  std::vector<Int> rows;
  Tensor slots;

  // E6: a read row outside the pool marks a padded sequence. F2: outside the pool: not stored.
  bool padded(Int b) const { return !row_in_pool(*pool, rows[static_cast<std::size_t>(b)]); }
  bool stores(Int b, Int i) const {
    return !padded(b) && real_token(x, b, i) && row_in_pool(*pool, int_at(slots, {b, i}));
  }
};

// F2: the slots stored to are distinct, and no other lane's read row.
void require_distinct(const Verify& call) {
  std::vector<Int> before;
  for (Int b = 0; b < call.x.lanes(); ++b) {
    for (Int i = 0; i < call.x.seq(); ++i) {
      if (!call.stores(b, i)) continue;
      const Int slot = int_at(call.slots, {b, i});
      if (std::find(before.begin(), before.end(), slot) != before.end()) {
        reject("state_slots", "two stores to one slot");
      }
      before.push_back(slot);
      for (Int other = 0; other < call.x.lanes(); ++other) {
        if (other != b && call.rows[static_cast<std::size_t>(other)] == slot) {
          reject("state_slots", "another lane's read row");
        }
      }
    }
  }
}

void require_parents(const Index& x) {
  for (Int b = 0; b < x.lanes(); ++b) {
    for (Int i = 0; i < x.seq(); ++i) {
      if (real_token(x, b, i)) parent(x, b, i);
    }
  }
}

// F2: a child goes on from its parent's unrounded state; without a parent a token starts from the
// sequence's row, which is read before anything is stored.
Tensor run_verify(const Gated& in, const Verify& call) {
  const Index& x = call.x;
  std::vector<double> out(static_cast<std::size_t>(in.tokens * in.heads * in.value), 0.0);
  std::vector<State> first;
  for (Int row : call.rows) first.push_back(read_state(call.pool, row, in));
  for (Int b = 0; b < x.lanes(); ++b) {
    if (call.padded(b)) continue;
    std::vector<State> states(static_cast<std::size_t>(x.seq()));
    for (Int i : by_position(x, b)) {
      const std::optional<Int> from = parent(x, b, i);
      State& state = states[static_cast<std::size_t>(i)];
      state = from ? states[static_cast<std::size_t>(*from)] : first[static_cast<std::size_t>(b)];
      gated_token(in, b * x.seq() + i, state, out);
      if (call.stores(b, i)) store_state(call.pool, int_at(call.slots, {b, i}), state);
    }
  }
  return gated_output(in, out);
}

}  // namespace

void op_gdn_verify(Fields& fields, Result& result) {
  Verify call;
  call.x = parse_index(fields);
  if (!call.x.draft()) reject("index", "not a draft");
  const Gated in = read_gated(fields, 2, false, true);
  if (in.q.shape[0] != call.x.lanes() || in.q.shape[1] != call.x.seq()) {
    reject("q", "not [B,S,Hq,K]");
  }
  call.pool = fields.tensor("state_pool");
  require_state(*call.pool, in, "state_pool");
  call.rows = fields.int_list("state_indices", call.x.lanes());
  call.slots = *fields.tensor("state_slots");
  if (call.slots.dtype != "i32" && call.slots.dtype != "i64") {
    reject("state_slots", "neither int32 nor int64");
  }
  if (call.slots.shape != std::vector<Int>{call.x.lanes(), call.x.seq()}) {
    reject("state_slots", "not [B,S]");
  }
  require_parents(call.x);
  require_distinct(call);
  result.add("output", run_verify(in, call));
  result.add("state_pool", call.pool);
}

}  // namespace quire_literal
