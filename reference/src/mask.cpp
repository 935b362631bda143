// What a call's tokens are and see: positions, mask, advance (laws A11, A12, B6).
#include <quire/index_view.h>

#include "ops.h"
#include "parallel.h"
#include "rows.h"

#include <algorithm>

namespace quire::reference {

// A12: `pos` clamped to [0, C - 1] (S - 1 on whole), padding 0; independent of every.
void positions(const quire_positions_args& args) {
  const IndexView view(*args.index);
  const RowView out(args.positions);
  const std::int64_t context = args.index->table != nullptr ? args.index->table->shape[1] : view.seq();
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      *reinterpret_cast<std::int64_t*>(out.at(b, i)) = std::clamp<std::int64_t>(view.position(b, i), 0, context - 1);
    }
  }
}

// B6: B1-B5 as bools.
void mask(const quire_mask_args& args) {
  const IndexView view(*args.index);
  const RowView out(args.mask);
  const std::int64_t columns = args.mask->shape[2];
  const std::int64_t tokens = view.batch() * view.seq();
  parallel_for(tokens, static_cast<double>(tokens) * static_cast<double>(columns), [&](std::int64_t token) {
    const std::int64_t b = token / view.seq();
    const std::int64_t i = token % view.seq();
    for (std::int64_t c = 0; c < columns; ++c) {
      const bool seen = view.sees(b, i, view.is_selecting() ? view.choice(b, i, c) : c);  // B5
      *out.at(b, i, c) = seen ? std::byte{1} : std::byte{0};
    }
  });
}

// A11: one past the lane's greatest position; a lane of padding goes to 0.
void advance(const quire_advance_args& args) {
  const IndexView view(*args.index);
  const RowView out(args.positions);
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    *reinterpret_cast<std::int64_t*>(out.at(b, 0)) = static_cast<std::int64_t>(static_cast<std::uint64_t>(view.greatest(b)) + 1);
  }
}

}  // namespace quire::reference
