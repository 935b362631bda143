/* extend: stores first, then what each lane's tokens attend over (laws C1-C9). The heart of a backend, and exact to the bit. */
#include "template.h"

#include <string.h>

/* The slot's row in the pool; null where the slot addresses nothing (A2). */
static char* pool_row(const quire_tensor* pool, int64_t slot) {
  return slot >= 0 && slot < pool->shape[0] ? template_at(pool, slot) : NULL;
}

/* C3. Of two tokens aimed at one slot the later one wins; C4 allows either, element by element. */
static void store(const quire_extend_args* call) {
  const quire_index* index = call->index;
  for (int64_t b = 0; b < index->pos->shape[0]; ++b) {
    const template_lane lane = template_read_lane(index, b);
    for (int64_t i = 0; i < index->pos->shape[1]; ++i) {
      char* row = pool_row(call->pool, template_target(&lane, i));
      if (row != NULL) template_copy_row(call->values, 2, template_at2(call->values, b, i), call->pool, 1, row);
    }
  }
}

/* Puts a column's row at `to`, an address behind the first `axis` axes of `seen`: the pool's row of the column's slot, on a whole index its
 * token's values (C7), and zero where there is neither or where nobody sees it. What an unseen slot holds is not read (C8). */
static void put_column(const quire_extend_args* call, const template_lane* lane, int64_t column, bool is_seen, int32_t axis, char* to) {
  const char* row = NULL;
  const bool is_tabled = call->index->kind == QUIRE_INDEX_TABLED;
  if (is_seen && is_tabled) row = pool_row(call->pool, template_slot(lane, column));
  if (is_seen && !is_tabled) {
    const int64_t token = template_token_of_column(lane, column);
    if (token >= 0) row = template_at2(call->values, lane->lane, token);
  }
  if (row == NULL)
    template_clear_row(call->seen, axis, to);
  else if (is_tabled)
    template_copy_row(call->pool, 1, row, call->seen, axis, to);
  else
    template_copy_row(call->values, 2, row, call->seen, axis, to);
}

/* C5: how many of a lane's tokens see each column. What a token sees is one range, so its begin counts 1 and its end -1, and the sum of the
 * counts so far is the number of tokens that see a column: the cost is in tokens and columns, never in their product. */
static void count_readers(const template_lane* lane, int64_t* change, int64_t columns) {
  memset(change, 0, (size_t)(columns + 1) * sizeof *change);
  for (int64_t i = 0; i < lane->index->pos->shape[1]; ++i) {
    const template_range range = template_seen(lane, i);
    ++change[range.begin];
    --change[range.end];
  }
}

/* C5 and C7: all columns of a lane. */
static void read_lane(const quire_extend_args* call, int64_t b, int64_t* change) {
  const quire_index* index = call->index;
  const template_lane lane = template_read_lane(index, b);
  const int64_t columns = template_columns(index);
  const bool is_tabled = index->kind == QUIRE_INDEX_TABLED;
  int64_t readers = 0;
  if (is_tabled) count_readers(&lane, change, columns);
  for (int64_t j = 0; j < columns; ++j) {
    if (is_tabled) readers += change[j];
    const bool is_seen = !is_tabled || readers > 0; /* a whole index hands over its values as they are */
    put_column(call, &lane, j, is_seen, 2, template_at2(call->seen, b, j));
  }
  if (index->slots == NULL) return;
  for (int64_t i = 0; i < index->pos->shape[1]; ++i) { /* C7: behind a draft's table its own values */
    template_copy_row(call->values, 2, template_at2(call->values, b, i), call->seen, 2, template_at2(call->seen, b, columns + i));
  }
}

/* C6: the columns that each token chose. B5: a choice that is no column is not seen. */
static void read_choices(const quire_extend_args* call, int64_t b) {
  const quire_index* index = call->index;
  const template_lane lane = template_read_lane(index, b);
  const int64_t columns = template_columns(index);
  for (int64_t i = 0; i < index->pos->shape[1]; ++i) {
    const template_range range = template_seen(&lane, i);
    for (int64_t c = 0; c < index->columns->shape[2]; ++c) {
      const int64_t column = template_integer3(index->columns, b, i, c);
      const bool is_seen = column >= 0 && column < columns && column >= range.begin && column < range.end;
      put_column(call, &lane, column, is_seen, 3, template_at3(call->seen, b, i, c));
    }
  }
}

/* One count per column of a lane and one behind them; lanes take turns with it. */
size_t template_extend_workspace(const void* args) {
  const quire_extend_args* call = args;
  if (call->index->kind != QUIRE_INDEX_TABLED || call->index->columns != NULL) return 0;
  return ((size_t)template_columns(call->index) + 1) * sizeof(int64_t);
}

void template_extend(const void* args, void* workspace) {
  const quire_extend_args* call = args;
  if (template_row_is_empty(call->values, 2)) return; /* rows of no elements */
  if (call->index->kind == QUIRE_INDEX_TABLED) store(call);  /* C2: of all lanes, before any read */
  for (int64_t b = 0; b < call->index->pos->shape[0]; ++b) {
    if (call->index->columns != NULL)
      read_choices(call, b);
    else
      read_lane(call, b, workspace);
  }
}
