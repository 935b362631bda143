/* positions and advance: the two ops that read an index and nothing else (laws A11, A12). */
#include "template.h"

/* A12: `pos` clamped to [0, C - 1], to [0, S - 1] on a whole index; padding 0. Blocks play no part, so C is the table's of positions. */
void template_positions(const void* args, void* workspace) {
  const quire_positions_args* call = args;
  const quire_index* index = call->index;
  const int64_t lanes = index->pos->shape[0];
  const int64_t seq = index->pos->shape[1];
  const int64_t last = (index->kind == QUIRE_INDEX_TABLED ? index->table->shape[1] : seq) - 1;
  (void)workspace;
  for (int64_t b = 0; b < lanes; ++b) {
    const template_lane lane = template_read_lane(index, b);
    for (int64_t i = 0; i < seq; ++i) {
      const int64_t t = template_position(&lane, i);
      *(int64_t*)(void*)template_at2(call->positions, b, i) = t < 0 ? 0 : t > last ? last : t;
    }
  }
}

/* A11: one past the lane's greatest position; a lane of padding goes to 0. */
void template_advance(const void* args, void* workspace) {
  const quire_advance_args* call = args;
  const int64_t lanes = call->index->pos->shape[0];
  (void)workspace;
  for (int64_t b = 0; b < lanes; ++b) {
    const template_lane lane = template_read_lane(call->index, b);
    /* Past the greatest number that there is comes padding, as in the reference. */
    *(int64_t*)(void*)template_at2(call->positions, b, 0) = lane.greatest == INT64_MAX ? INT64_MIN : lane.greatest + 1;
  }
}
