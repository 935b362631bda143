/* Reading an index: laws A2, B1-B5, B7, C3 and C7, a function each.
 *
 * Numbers that lie on a device have been checked by nobody. So every number read here may be anything: sums are written so that none
 * overflows, and what addresses nothing becomes -1 before it addresses anything.
 */
#include "template.h"

/* The table that the index reads: the positions', or that of its block size (A10). */
static const quire_tensor* table_read(const quire_index* index) {
  for (int64_t n = 0; n < index->block_table_count; ++n) {
    if (index->block_tables[n].block_size == index->reads) return index->block_tables[n].blocks;
  }
  return index->table;
}

template_lane template_read_lane(const quire_index* index, int64_t lane) {
  template_lane read = {.index = index, .lane = lane, .row = lane, .is_padding = false, .least = -1, .greatest = -1};
  if (index->row != NULL) {
    read.row = template_integer(index->row, lane);
    read.is_padding = read.row == -1; /* A2 */
  }
  if (index->kind == QUIRE_INDEX_TABLED && (read.row < 0 || read.row >= index->table->shape[0])) read.row = -1;
  for (int64_t i = 0; i < index->pos->shape[1]; ++i) {
    const int64_t t = template_position(&read, i);
    if (t < 0) continue;
    if (read.least < 0 || t < read.least) read.least = t;
    if (t > read.greatest) read.greatest = t;
  }
  return read;
}

/* A2: any negative position is padding. */
int64_t template_position(const template_lane* lane, int64_t i) {
  if (lane->is_padding) return -1;
  const int64_t t = template_integer2(lane->index->pos, lane->lane, i);
  return t < 0 ? -1 : t;
}

int64_t template_columns(const quire_index* index) {
  if (index->kind == QUIRE_INDEX_TABLED) return table_read(index)->shape[1];
  const int64_t seq = index->pos->shape[1];
  return seq / index->reads + (seq % index->reads != 0 ? 1 : 0); /* B3 */
}

int64_t template_slot(const template_lane* lane, int64_t column) {
  if (lane->row < 0) return -1;
  const int64_t slot = template_integer2(table_read(lane->index), lane->row, column);
  return slot < 0 ? -1 : slot;
}

/* C3. B7: a token past the last column stores nothing. */
int64_t template_target(const template_lane* lane, int64_t i) {
  const quire_index* index = lane->index;
  const int64_t t = template_position(lane, i);
  if (t < 0 || index->kind != QUIRE_INDEX_TABLED) return -1;
  if (index->slots != NULL) {
    const int64_t slot = template_integer2(index->slots, lane->lane, i);
    return slot < 0 ? -1 : slot;
  }
  const int64_t m = index->reads;
  if (t % m != m - 1 || t / m >= template_columns(index)) return -1; /* only a block's last token stores */
  return template_slot(lane, t / m);
}

/* B1, B3, B4: column j stands at p_j = j * m + m - 1 and is seen where p_j <= t and, under a window, p_j > t - w. */
static template_range seen_by_position(const template_lane* lane, int64_t t) {
  const quire_index* index = lane->index;
  const int64_t m = index->reads;
  const int64_t columns = template_columns(index);
  template_range range = {0, t / m}; /* p_j <= t: j < (t + 1) / m, without the sum, which overflows at the greatest position */
  if (t % m == m - 1 && range.end < columns) ++range.end;
  if (range.end > columns) range.end = columns;
  if (index->slots != NULL && range.end > lane->least) range.end = lane->least; /* B4; m is 1 under a draft */
  if (index->window > 0 && t >= index->window) range.begin = (t - index->window + 1) / m;
  return range;
}

/* B2: the tokens of one sequence stand side by side, so that token i's position p is at place i - t + p. */
static template_range seen_by_place(const template_lane* lane, int64_t i, int64_t t) {
  const int64_t window = lane->index->window;
  const int64_t first = window > 0 && t >= window ? t - window + 1 : 0;
  const template_range range = {i - t + first, i + 1};
  return range;
}

template_range template_seen(const template_lane* lane, int64_t i) {
  const template_range none = {0, 0};
  const int64_t t = template_position(lane, i);
  if (t < 0) return none;
  const template_range range =
      lane->index->kind != QUIRE_INDEX_TABLED && lane->index->reads == 1 ? seen_by_place(lane, i, t) : seen_by_position(lane, t);
  return range.begin < range.end ? range : none;
}

/* C7: a column is its token's values, a block's those of the token that closes it. */
int64_t template_token_of_column(const template_lane* lane, int64_t column) {
  const int64_t m = lane->index->reads;
  if (m == 1) return column;
  /* A whole lane holds the positions 0 .. greatest, the last of them at its last place. */
  const int64_t seq = lane->index->pos->shape[1];
  const int64_t closing = column * m + (m - 1);
  const int64_t before_last = lane->greatest - closing;
  return closing <= lane->greatest && before_last < seq ? seq - 1 - before_last : -1;
}
