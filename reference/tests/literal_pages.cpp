// The literal implementation of E10-E14 and F1: page tables and the rows they name.
#include <algorithm>

#include "literal_parts.h"

namespace quire_literal {

namespace {

// E10: sequence b owns ids[first[b]:first[b+1]] and has (pages_b - 1) * size + last[b] tokens.
struct Pages {
  std::vector<Int> ids, first, last;
  Int size = 0;
  std::optional<Int> pool;  // the pool's page count, where it is known

  std::size_t sequences() const { return first.size() - 1; }
  Int pages(std::size_t b) const { return first[b + 1] - first[b]; }
  Int id(std::size_t b, Int page) const { return ids[static_cast<std::size_t>(first[b] + page)]; }
};

// E10: the tokens after the call; a sequence without pages has none.
Wide total_tokens(const Pages& table, std::size_t b) {
  if (table.pages(b) == 0) return 0;
  return Wide(table.pages(b) - 1) * table.size + table.last[b];
}

// What one sequence of the call reads and writes, as pages of its own list.
struct Touched {
  std::optional<Int> read;
  std::vector<Int> written;
};

// E13: page_size not a positive multiple of 64; last_page_len outside [1,page_size]; the list's own
// shape: starts at 0, never falls, within page_indices. `sequences` is negative where any will do.
Pages read_pages(Fields& fields, Int sequences) {
  Pages table;
  table.size = fields.integer("page_size");
  if (table.size <= 0 || table.size % 64 != 0) {
    reject("page_size", "not a positive multiple of 64");
  }
  table.ids = fields.int_list("page_indices", -1);
  table.first = fields.int_list("page_indptr", sequences < 0 ? -1 : sequences + 1);
  if (table.first.empty() || table.first[0] != 0) reject("page_indptr", "does not start at 0");
  for (std::size_t b = 0; b + 1 < table.first.size(); ++b) {
    if (table.first[b + 1] < table.first[b]) reject("page_indptr", "falls");
  }
  if (table.first.back() > static_cast<Int>(table.ids.size())) {
    reject("page_indptr", "past page_indices");
  }
  table.last = fields.int_list("last_page_len", static_cast<Int>(table.sequences()));
  for (std::size_t b = 0; b < table.sequences(); ++b) {
    if (table.pages(b) == 0) continue;
    if (table.last[b] < 1 || table.last[b] > table.size) {
      reject("last_page_len", "outside [1,page_size]");
    }
  }
  if (fields.has("num_pages")) {
    table.pool = fields.integer("num_pages");
    if (*table.pool < 0) reject("num_pages", "negative");
  }
  return table;
}

// E13: a page id outside the pool (-1 too) where the call reads or writes that page.
void require_id(const Pages& table, Int id) {
  if (id < 0 || (table.pool && id >= *table.pool)) {
    reject("page_indices", "a page that the call touches is outside the pool");
  }
}

bool has_id(const Pages& table, std::size_t b, const std::vector<Int>& pages, Int id) {
  for (Int page : pages) {
    if (table.id(b, page) == id) return true;
  }
  return false;
}

// E13: a page written by one sequence and read or written by another in the same call; a page twice
// among those that one sequence writes.
void require_own_pages(const Pages& table, const std::vector<Touched>& touched) {
  for (std::size_t b = 0; b < touched.size(); ++b) {
    if (touched[b].read) require_id(table, table.id(b, *touched[b].read));
    for (Int page : touched[b].written) require_id(table, table.id(b, page));
  }
  for (std::size_t b = 0; b < touched.size(); ++b) {
    for (std::size_t n = 0; n < touched[b].written.size(); ++n) {
      const Int id = table.id(b, touched[b].written[n]);
      for (std::size_t m = 0; m < n; ++m) {
        if (table.id(b, touched[b].written[m]) == id) {
          reject("page_indices", "a page twice among those that one sequence writes");
        }
      }
      for (std::size_t other = 0; other < touched.size(); ++other) {
        if (other == b) continue;
        const bool read = touched[other].read && table.id(other, *touched[other].read) == id;
        if (read || has_id(table, other, touched[other].written, id)) {
          reject("page_indices", "a page that one sequence writes and another touches");
        }
      }
    }
  }
}

struct Slots {
  std::vector<Int> read, write, prefix, starts;
};

// E11: prefix = total - new; reads the page holding the last prefix token (-1 when the prefix is
// empty); final state to the last page; checkpoint_cu_starts[i] = page_indptr[i] + prefix_i /
// page_size. A sequence without new tokens gets output row -1.
Slots prefill_slots(const Pages& table, const std::vector<Int>& cu) {
  Slots slots;
  std::vector<Touched> touched(table.sequences());
  for (std::size_t b = 0; b < table.sequences(); ++b) {
    const Wide fresh = cu[b + 1] - cu[b];
    const Wide prefix = total_tokens(table, b) - fresh;
    if (prefix < 0) reject("page_indptr", "a page list too short for the new tokens");
    const Int first_written = static_cast<Int>(prefix / table.size);
    slots.prefix.push_back(static_cast<Int>(prefix));
    slots.starts.push_back(table.first[b] + first_written);
    slots.read.push_back(-1);
    slots.write.push_back(-1);
    if (prefix > 0) {
      const Int page = static_cast<Int>((prefix - 1) / table.size);
      slots.read.back() = table.id(b, page);
      if (fresh > 0) touched[b].read = page;
    }
    if (fresh == 0) continue;
    slots.write.back() = table.id(b, table.pages(b) - 1);
    // Never a page that ends at or before the prefix: the first one to end past it, and on.
    for (Int page = first_written; page < table.pages(b); ++page) {
      touched[b].written.push_back(page);
    }
  }
  require_own_pages(table, touched);
  return slots;
}

// E12: last_page_len == 1 reads the page before and writes the last; otherwise both are the last
// page. E10: without pages the sequence is padded. E13: each needs an earlier token.
Slots decode_slots(const Pages& table) {
  Slots slots;
  std::vector<Touched> touched(table.sequences());
  for (std::size_t b = 0; b < table.sequences(); ++b) {
    slots.read.push_back(-1);
    slots.write.push_back(-1);
    const Int pages = table.pages(b);
    if (pages == 0) continue;
    if (total_tokens(table, b) < 2) reject("last_page_len", "no token before the decoded one");
    touched[b].read = table.last[b] == 1 ? pages - 2 : pages - 1;
    touched[b].written.push_back(pages - 1);
    slots.read.back() = table.id(b, *touched[b].read);
    slots.write.back() = table.id(b, pages - 1);
  }
  require_own_pages(table, touched);
  return slots;
}

Tensor int32_list(const std::vector<Int>& values) {
  return int_tensor("i32", {static_cast<Int>(values.size())}, values);
}

}  // namespace

void op_gdn_prefill_slots(Fields& fields, Result& result) {
  const std::vector<Int> cu = read_cu_seqlens(fields, -1);
  const Pages table = read_pages(fields, static_cast<Int>(cu.size()) - 1);
  const Slots slots = prefill_slots(table, cu);
  result.add("state_indices", int32_list(slots.read));
  result.add("output_state_indices", int32_list(slots.write));
  result.add("prefix_lens", int32_list(slots.prefix));
  result.add("checkpoint_cu_starts", int32_list(slots.starts));
}

void op_gdn_decode_slots(Fields& fields, Result& result) {
  const Slots slots = decode_slots(read_pages(fields, -1));
  result.add("state_indices", int32_list(slots.read));
  result.add("output_state_indices", int32_list(slots.write));
}

// E11: the checkpoint rows need no list of their own: checkpoint_state_indices is page_indices.
void op_gdn_prefill_paged(Fields& fields, Result& result) {
  const Gated in = read_gated(fields, 1, true, false);
  Prefill how;
  how.cu_seqlens = read_cu_seqlens(fields, in.tokens);
  const Shared pool = fields.tensor("state_pool");
  require_state(*pool, in, "state_pool");
  Pages table = read_pages(fields, static_cast<Int>(how.cu_seqlens.size()) - 1);
  table.pool = pool->shape[0];
  const Slots slots = prefill_slots(table, how.cu_seqlens);
  how.initial = pool;
  how.output = pool;
  how.checkpoints = pool;
  how.read_rows = slots.read;
  how.write_rows = slots.write;
  how.checkpoint_rows = table.ids;
  how.checkpoint_starts = slots.starts;
  how.prefix = slots.prefix;
  how.interval = table.size;
  how.store_final = true;
  result.add("output", run_prefill(in, how));
  result.add("state_pool", pool);
}

void op_gdn_decode_paged(Fields& fields, Result& result) {
  Gated in = read_gated(fields, 2, false, true);
  if (in.q.shape[1] != 1) reject("q", "decode takes one token");
  read_raw_gates(fields, in);
  const Shared pool = fields.tensor("state_pool");
  require_state(*pool, in, "state_pool");
  Pages table = read_pages(fields, in.tokens);
  table.pool = pool->shape[0];
  const Slots slots = decode_slots(table);
  result.add("output", run_decode(in, pool, slots.read, slots.write));
  result.add("state_pool", pool);
}

namespace {

const Tensor& blocks_of(const Index& x, Int page_size) {
  for (const BlockTable& blocks : x.every) {
    if (blocks.size == page_size) return blocks.blocks;
  }
  reject("page_size", "no blocks of that size");
}

// The real positions of a lane, in its tokens' order.
std::vector<Int> real_positions(const Index& x, Int b) {
  std::vector<Int> result;
  for (Int i = 0; i < x.seq(); ++i) {
    if (real_token(x, b, i)) result.push_back(position(x, b, i));
  }
  return result;
}

// F1: a row in two lanes with tokens, a row out of the table, positions not consecutive or past the
// block table.
void require_sequence(const Index& x, const Tensor& blocks, Int page_size, Int b,
                      std::vector<Int>& rows_before) {
  const Int row = lane_row(x, b);
  if (row < 0 || row >= blocks.shape[0]) reject("index", "a row out of the table");
  if (std::find(rows_before.begin(), rows_before.end(), row) != rows_before.end()) {
    reject("index", "a row in two lanes with tokens");
  }
  rows_before.push_back(row);
  const std::vector<Int> held = real_positions(x, b);
  for (std::size_t n = 1; n < held.size(); ++n) {
    if (Wide(held[n]) != Wide(held[n - 1]) + 1) reject("index", "positions not consecutive");
  }
  if (held.back() / page_size >= blocks.shape[1]) reject("index", "past the block table");
}

Int lanes_of_padding(const Index& x) {
  Int count = 0;
  for (Int b = 0; b < x.lanes(); ++b) count += real_positions(x, b).empty() ? 1 : 0;
  return count;
}

}  // namespace

// F1: E10's tables for the lanes' sequences in lane order. A lane of padding is a sequence of no
// tokens and no pages with last_page_len = page_size, or of its one scratch page.
void op_page_table(Fields& fields, Result& result) {
  const Index x = parse_index(fields);
  if (!x.tabled()) reject("index", "whole");
  if (x.columns) reject("index", "selecting");
  if (x.draft()) reject("index", "a draft");
  const Int size = fields.integer("page_size");
  const Tensor& blocks = blocks_of(x, size);
  std::vector<Int> scratch;
  if (fields.has("scratch")) scratch = fields.int_list("scratch", lanes_of_padding(x));
  std::vector<Int> cu = {0}, ids, first = {0}, last, rows_before;
  std::size_t padded = 0;
  for (Int b = 0; b < x.lanes(); ++b) {
    const std::vector<Int> held = real_positions(x, b);
    cu.push_back(cu.back() + static_cast<Int>(held.size()));
    if (held.empty()) {
      if (fields.has("scratch")) ids.push_back(scratch[padded++]);
      last.push_back(size);
    } else {
      require_sequence(x, blocks, size, b, rows_before);
      const Int last_page = held.back() / size;
      for (Int page = 0; page <= last_page; ++page) {
        ids.push_back(int_at(blocks, {lane_row(x, b), page}));
      }
      last.push_back(held.back() % size + 1);
    }
    first.push_back(static_cast<Int>(ids.size()));
  }
  result.add("cu_seqlens", int32_list(cu));
  result.add("page_indices", int32_list(ids));
  result.add("page_indptr", int32_list(first));
  result.add("last_page_len", int32_list(last));
}

}  // namespace quire_literal
