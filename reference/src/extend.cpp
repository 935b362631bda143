// extend: stores first, then what the lane's tokens attend over (laws C).
#include "extend.h"

#include "ops.h"
#include "parallel.h"

#include <vector>

namespace quire::reference {

void store(const IndexView& view, const RowView& values, const RowView& pool) {
  if (!view.is_tabled()) return;  // C7
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    for (std::int64_t i = 0; i < view.seq(); ++i) {
      const std::int64_t slot = slot_in(pool, view.target(b, i));
      if (slot >= 0) pool.copy_row(1, values.at(b, i), values, 2, pool.at(slot));
    }
  }
}

namespace {

// C5: whether some real token of the lane sees each of the table's columns.
std::vector<bool> seen_by_lane(const IndexView& view, std::int64_t b) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(view.table_columns()) + 1);
  for (std::int64_t i = 0; i < view.seq(); ++i) {
    const ColumnRange range = view.table_range(b, i);
    ++change[static_cast<std::size_t>(range.begin)];
    --change[static_cast<std::size_t>(range.end)];
  }
  std::vector<bool> seen(static_cast<std::size_t>(view.table_columns()));
  std::int64_t readers = 0;
  for (std::size_t j = 0; j < seen.size(); ++j) {
    readers += change[j];
    seen[j] = readers > 0;
  }
  return seen;
}

class Extend {
 public:
  explicit Extend(const quire_extend_args& args) : view_(*args.index), values_(args.values), pool_(args.pool), seen_(args.seen) {}

  void run() {
    store(view_, values_, pool_);  // C2
    std::int64_t elements = 1;
    for (int axis = 0; axis < rank(); ++axis) elements *= seen_.size(axis);
    const bool selecting = view_.is_selecting();
    parallel_for(selecting ? view_.batch() * view_.seq() : view_.batch(), static_cast<double>(elements),
                 [&](std::int64_t n) { selecting ? read_choices(n / view_.seq(), n % view_.seq()) : read_lane(n); });
  }

 private:
  int rank() const { return view_.is_selecting() ? 3 : 2; }

  // The column's row in the pool, or on a whole index its token's values; null where it reads as zero.
  const std::byte* column_row(std::int64_t b, std::int64_t column) const {
    if (view_.is_tabled()) {
      const std::int64_t slot = slot_in(pool_, view_.slot(b, column));
      return slot < 0 ? nullptr : pool_.at(slot);
    }
    const std::int64_t place = view_.block_size() == 1 ? column : view_.closing_token(b, column);  // C7
    return place < 0 ? nullptr : values_.at(b, place);
  }

  void put(const std::byte* row, int axis, std::byte* to) const {
    if (row == nullptr) return seen_.clear_row(axis, to);
    const bool from_pool = view_.is_tabled();
    seen_.copy_row(axis, row, from_pool ? pool_ : values_, from_pool ? 1 : 2, to);
  }

  // C5, and C7 on whole indices and drafts.
  void read_lane(std::int64_t b) const {
    const std::vector<bool> seen = view_.is_tabled() ? seen_by_lane(view_, b) : std::vector<bool>();
    for (std::int64_t j = 0; j < view_.table_columns(); ++j) {
      const bool reads = !view_.is_tabled() || seen[static_cast<std::size_t>(j)];
      put(reads ? column_row(b, j) : nullptr, 2, seen_.at(b, j));
    }
    for (std::int64_t i = 0; view_.is_draft() && i < view_.seq(); ++i) {
      seen_.copy_row(2, values_.at(b, i), values_, 2, seen_.at(b, view_.table_columns() + i));
    }
  }

  // C6
  void read_choices(std::int64_t b, std::int64_t i) const {
    for (std::int64_t c = 0; c < view_.choices(); ++c) {
      const std::int64_t column = view_.choice(b, i, c);
      put(view_.sees(b, i, column) ? column_row(b, column) : nullptr, 3, seen_.at(b, i, c));
    }
  }

  IndexView view_;
  RowView values_, pool_, seen_;
};

}  // namespace

void extend(const quire_extend_args& args) { Extend(args).run(); }

}  // namespace quire::reference
