// What tokens are and see, and the rows of page tables, in the honest backend (laws A11, A12, B6, E11, E12).
#include <quire/page_walk.h>

#include "ops.h"
#include "rows.h"
#include "sight.h"

#include <algorithm>
#include <cstring>

namespace quire::conformance::honest {

namespace {

template <typename Integer>
void put(std::byte* place, std::int64_t number) {
  const auto value = static_cast<Integer>(number);
  std::memcpy(place, &value, sizeof value);
}

}  // namespace

void positions(const quire_positions_args& args, const Setting& setting) {
  const IndexView view(*args.index);
  const Rows out(args.positions, setting);
  const std::int64_t context = args.index->table != nullptr ? args.index->table->shape[1] : view.seq();
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      const std::int64_t t = view.position(b, i);
      std::int64_t clamped = std::clamp<std::int64_t>(t, 0, context - 1);
      if (setting.is(Fault::positions_unclamped)) clamped = std::max<std::int64_t>(t, 0);
      if (setting.is(Fault::positions_keep_padding)) clamped = std::min(t, context - 1);
      if (setting.is(Fault::positions_in_blocks)) clamped /= view.block_size();
      put<std::int64_t>(out.at(b, i), clamped);
    }
  }
}

void mask(const quire_mask_args& args, const Setting& setting) {
  const Sight sight(*args.index, setting);
  const IndexView& view = sight.view();
  const Rows out(args.mask, setting);
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      for (std::int64_t c = 0; c < args.mask->shape[2]; ++c) {
        std::int64_t column = c;
        if (view.is_selecting()) column = sight.chosen(b, i, c);
        bool seen = view.is_selecting() ? column >= 0 : sight.sees(b, i, c);
        if (setting.is(Fault::mask_needs_slot) && view.is_tabled() && column >= 0 && column < view.table_columns())
          seen = seen && view.slot(b, column) >= 0;
        const int yes = setting.is(Fault::mask_true_is_255) ? 255 : 1;
        *out.at(b, i, c) = static_cast<std::byte>(seen ? yes : 0);
      }
    }
  }
}

void advance(const quire_advance_args& args, const Setting& setting) {
  const IndexView view(*args.index);
  const Rows out(args.positions, setting);
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    std::int64_t next = view.greatest(b) + 1;
    if (setting.is(Fault::advance_from_last_token)) next = view.position(b, view.seq() - 1) + 1;
    if (setting.is(Fault::advance_by_tokens)) next = view.greatest(b) + view.seq();
    put<std::int64_t>(out.at(b, 0), next);
  }
}

void gdn_prefill_slots(const quire_gdn_slots_args& args, const Setting& setting) {
  const PageLists lists(args);
  const Rows read(args.state_indices, setting), write(args.output_state_indices, setting), prefixes(args.prefix_lens, setting),
      starts(args.checkpoint_cu_starts, setting);
  for (std::int64_t i = 0; i < args.last_page_len->shape[0]; ++i) {
    const PagedSequence sequence = lists.prefill(i);
    const std::int64_t prefix = sequence.prefix();
    std::int64_t read_page = sequence.page_of(prefix - 1);
    if (setting.is(Fault::prefix_page_one_late)) read_page = std::min(sequence.page_of(prefix), sequence.pages - 1);
    std::int64_t first = sequence.page_of(prefix);
    if (setting.is(Fault::checkpoint_starts_rounded_up)) first = (prefix + sequence.page_size - 1) / sequence.page_size;
    const bool stores = sequence.fresh > 0 || (setting.is(Fault::empty_sequence_has_output_row) && sequence.pages > 0);
    put<std::int32_t>(read.at(i), prefix > 0 ? lists.page(i, read_page) : -1);
    put<std::int32_t>(write.at(i), stores ? lists.page(i, sequence.pages - 1) : -1);
    put<std::int32_t>(prefixes.at(i), setting.is(Fault::prefix_in_whole_pages) ? prefix - prefix % sequence.page_size : prefix);
    put<std::int32_t>(starts.at(i), lists.page_indptr(i) + first);
  }
}

void gdn_decode_slots(const quire_gdn_slots_args& args, const Setting& setting) {
  const PageLists lists(args);
  const Rows read(args.state_indices, setting), write(args.output_state_indices, setting);
  for (std::int64_t i = 0; i < args.last_page_len->shape[0]; ++i) {
    const PagedSequence sequence = lists.decode(i);
    const bool padded = sequence.pages == 0;  // E10
    const std::int64_t page = setting.is(Fault::decode_reads_last_page) ? sequence.pages - 1 : sequence.page_of(sequence.prefix() - 1);
    put<std::int32_t>(read.at(i), padded ? -1 : lists.page(i, page));
    put<std::int32_t>(write.at(i), padded ? -1 : lists.page(i, sequence.pages - 1));
  }
}

}  // namespace quire::conformance::honest
