// extend in the honest backend (laws C).
#include "extend.h"

#include "ops.h"

#include <algorithm>
#include <cstring>

namespace quire::conformance::honest {

void store(const Sight& sight, const Rows& values, const Rows& pool, std::int64_t begin, std::int64_t end, const Setting& setting) {
  const IndexView& view = sight.view();
  if (!view.is_tabled() || !pool.defined()) return;  // C7
  for (std::int64_t b = begin; b < end; ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      const std::int64_t slot = sight.target(b, i, pool.size(0));
      if (slot < 0) continue;
      copy_row(values, 2, values.at(b, i), pool, 1, pool.at(slot), setting);
      if (setting.is(Fault::neighbour_slot_written) && slot + 1 < pool.size(0))
        copy_row(values, 2, values.at(b, i), pool, 1, pool.at(slot + 1), setting);
      const std::int64_t row = pool.extent(1) * pool.element_bytes();
      const std::int64_t step = pool.stride(0) * pool.element_bytes();
      if (setting.is(Fault::gap_overwritten) && slot + 1 < pool.size(0) && step > row) {
        std::memset(pool.at(slot) + row, 0, static_cast<std::size_t>(step - row));
      }
      if (setting.is(Fault::rows_copied_in_16_bytes) && row % 16 != 0) {  // the last vector goes past the row
        std::memset(pool.at(slot) + row, 0, static_cast<std::size_t>(16 - row % 16));
      }
    }
  }
}

PoolBefore::PoolBefore(const Rows& pool, const Setting& setting) : rows_(pool) {
  if (!setting.is(Fault::reads_before_stores) || !pool.defined()) return;
  const std::int64_t bytes = pool.extent() * pool.element_bytes();
  if (bytes == 0 || bytes > (std::int64_t{1} << 28)) return;
  bytes_.assign(pool.at(0), pool.at(0) + bytes);
  tensor_ = pool.tensor();
  tensor_.data = bytes_.data();
  rows_ = Rows(&tensor_, setting);
}

namespace {

class Extend {
 public:
  Extend(const quire_extend_args& args, const Setting& setting)
      : setting_(setting),
        sight_(*args.index, setting),
        values_(args.values, setting),
        pool_(args.pool, setting),
        seen_(args.seen, setting),
        before_(pool_, setting) {}

  void run() {
    const IndexView& view = sight_.view();
    if (!setting_.is(Fault::lanes_one_after_another)) store(sight_, values_, pool_, 0, view.batch(), setting_);  // C2
    for (std::int64_t b = 0; b < view.batch(); ++b) {
      if (setting_.is(Fault::lanes_one_after_another)) store(sight_, values_, pool_, b, b + 1, setting_);
      view.is_selecting() ? read_choices(b) : read_lane(b);
    }
    if (setting_.is(Fault::element_past_output_written)) {
      std::memset(const_cast<std::byte*>(seen_.end()), 0, static_cast<std::size_t>(seen_.element_bytes()));
    }
  }

 private:
  // C5: which of the table's columns some token of the lane sees.
  std::vector<bool> seen_columns(std::int64_t b) const {
    const IndexView& view = sight_.view();
    std::vector<bool> seen(static_cast<std::size_t>(view.table_columns()));
    std::int64_t first = view.table_columns(), last = -1;
    for (std::int64_t j = 0; j < view.table_columns(); ++j) {
      for (std::int64_t i = 0; i < view.seq() && !seen[static_cast<std::size_t>(j)]; ++i)
        seen[static_cast<std::size_t>(j)] = sight_.sees(b, i, j);
      if (!seen[static_cast<std::size_t>(j)]) continue;
      first = std::min(first, j);
      last = j;
    }
    const auto widen = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t j = from; j <= to; ++j) seen[static_cast<std::size_t>(j)] = true;
    };
    if (setting_.is(Fault::columns_past_positions_read) && last >= 0) widen(last, view.table_columns() - 1);
    if (setting_.is(Fault::columns_below_window_read) && last >= 0) widen(0, last);
    if (setting_.is(Fault::columns_between_windows_read)) widen(first, last);
    return seen;
  }

  void put(std::int64_t b, std::int64_t column, int axis, std::byte* to) const {
    const IndexView& view = sight_.view();
    if (view.is_tabled()) {
      const Rows& pool = before_.rows();
      const std::int64_t slot = sight_.slot(b, column, pool.size(0));
      if (slot >= 0) return copy_row(pool, 1, pool.at(slot), seen_, axis, to, setting_);
    } else if (const std::int64_t place = view.block_size() == 1 ? column : sight_.closing_token(b, column); place >= 0) {
      return copy_row(values_, 2, values_.at(b, place), seen_, axis, to, setting_);  // C7
    }
    clear_row(seen_, axis, to);
  }

  void read_lane(std::int64_t b) const {
    const IndexView& view = sight_.view();
    const std::vector<bool> seen =
        view.is_tabled() ? seen_columns(b) : std::vector<bool>(static_cast<std::size_t>(view.table_columns()), true);
    for (std::int64_t j = 0; j < view.table_columns(); ++j) {
      seen[static_cast<std::size_t>(j)] ? put(b, j, 2, seen_.at(b, j)) : clear_row(seen_, 2, seen_.at(b, j));
    }
    for (std::int64_t i = 0; view.is_draft() && i < view.seq(); ++i) {  // C7: verbatim
      std::byte* to = seen_.at(b, view.table_columns() + i);
      copy_row(values_, 2, values_.at(b, i), seen_, 2, to, setting_);
      if (setting_.is(Fault::draft_padding_zeroed) && !view.is_real(b, i)) clear_row(seen_, 2, to);
    }
  }

  // C6
  void read_choices(std::int64_t b) const {
    const IndexView& view = sight_.view();
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      std::vector<std::int64_t> columns;
      for (std::int64_t c = 0; c < view.choices(); ++c) columns.push_back(sight_.chosen(b, i, c));
      if (setting_.is(Fault::choices_sorted)) std::sort(columns.begin(), columns.end());
      if (setting_.is(Fault::duplicate_choices_once)) {
        for (std::size_t c = columns.size(); c-- > 0;) {
          if (std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(c), columns[c]) !=
              columns.begin() + static_cast<std::ptrdiff_t>(c))
            columns[c] = -1;
        }
      }
      for (std::int64_t c = 0; c < view.choices(); ++c) {
        const std::int64_t column = columns[static_cast<std::size_t>(c)];
        column >= 0 ? put(b, column, 3, seen_.at(b, i, c)) : clear_row(seen_, 3, seen_.at(b, i, c));
      }
    }
  }

  Setting setting_;
  Sight sight_;
  Rows values_, pool_, seen_;
  PoolBefore before_;
};

}  // namespace

void extend(const quire_extend_args& args, const Setting& setting) { Extend(args, setting).run(); }

}  // namespace quire::conformance::honest
