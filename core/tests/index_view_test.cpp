// What a token sees and where it stores, against the laws written out element by element (A2, B1-B7, C3).
#include <quire/index_view.h>
#include <quire/ops.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

using namespace quire;
using namespace quire::test;

namespace {

// An index's plain numbers, from which the laws are read below without the library.
struct Plain {
  IndexKind kind = IndexKind::tabled;
  std::int64_t B = 1, S = 1, R = 1, C = 1, m = 1, blocks = 0;
  Integers pos, table, row, block_table, columns, slots;
  std::vector<std::uint8_t> sees;
  std::int64_t window = 0, k = 0;
  bool draft = false;

  std::int64_t width() const {
    if (kind == IndexKind::tabled) return m == 1 ? C : blocks;
    return m == 1 ? S : (S + m - 1) / m;  // B3
  }
  std::int64_t mask_width() const { return k > 0 ? k : width() + (draft ? S : 0); }
  // A2
  std::int64_t row_of(std::int64_t b) const { return row.empty() ? b : row[static_cast<std::size_t>(b)]; }
  std::int64_t position(std::int64_t b, std::int64_t i) const {
    const std::int64_t p = pos[static_cast<std::size_t>(b * S + i)];
    return p < 0 || (kind == IndexKind::tabled && row_of(b) == -1) ? -1 : p;
  }
  std::int64_t least(std::int64_t b) const {
    std::int64_t found = -1;
    for (std::int64_t i = 0; i < S; ++i) {
      const std::int64_t p = position(b, i);
      if (p >= 0 && (found < 0 || p < found)) found = p;
    }
    return found;
  }
  bool in_window(std::int64_t p, std::int64_t t) const { return window == 0 || p > t - window; }

  bool sees_column(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const std::int64_t t = position(b, i);
    if (t < 0 || j < 0 || j >= width() + (draft ? S : 0)) return false;
    if (kind != IndexKind::tabled && m == 1) {  // B2
      const std::int64_t p = position(b, j);
      return p >= 0 && j - p == i - t && p <= t && in_window(p, t);
    }
    if (j >= width()) {  // B4, token columns
      const std::int64_t other = j - width();
      const std::int64_t p = position(b, other);
      return sees[static_cast<std::size_t>((b * S + i) * S + other)] != 0 && p >= 0 && p <= t && in_window(p, t);
    }
    const std::int64_t p = j * m + m - 1;  // A10: where the column stands
    if (draft && p >= least(b)) return false;
    return p <= t && in_window(p, t);  // B1
  }
  bool sees_entry(std::int64_t b, std::int64_t i, std::int64_t c) const {
    if (k == 0) return sees_column(b, i, c);
    return c >= 0 && c < k && sees_column(b, i, columns[static_cast<std::size_t>((b * S + i) * k + c)]);  // B5
  }
  // C3, B7
  std::int64_t target(std::int64_t b, std::int64_t i) const {
    const std::int64_t t = position(b, i);
    if (t < 0) return -1;
    if (draft) return std::max<std::int64_t>(slots[static_cast<std::size_t>(b * S + i)], -1);
    if ((t + 1) % m != 0 || t / m >= width()) return -1;
    const std::int64_t r = row_of(b);
    if (r < 0 || r >= R) return -1;
    return std::max<std::int64_t>((m == 1 ? table : block_table)[static_cast<std::size_t>(r * width() + t / m)], -1);
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : next_(seed << 20) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(mixed(next_++) % static_cast<std::uint64_t>(high - low + 1));
  }
  Integers list(std::int64_t count, std::int64_t low, std::int64_t high) {
    Integers values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back((*this)(low, high));
    return values;
  }

 private:
  std::uint64_t next_;
};

std::pair<Plain, Index> random_index(std::uint64_t seed) {
  Draw draw(seed);
  Plain plain;
  plain.B = draw(1, 3);
  plain.S = draw(1, 4);
  const std::int64_t kind = draw(0, 5);
  std::optional<Index> index;
  if (kind == 0) {
    plain.kind = IndexKind::whole;
    const Integers lens = draw.list(plain.B, 0, plain.S);
    index = Index::whole(plain.B, plain.S, lens);
    for (const std::int64_t n : lens) {
      for (std::int64_t i = 0; i < plain.S; ++i) plain.pos.push_back(i < plain.S - n ? -1 : i - (plain.S - n));
    }
  } else if (kind == 1) {
    plain.kind = IndexKind::packed;
    std::vector<Integers> lens;
    for (std::int64_t b = 0; b < plain.B; ++b) {
      Integers lane;
      Integers places;
      std::int64_t left = plain.S;
      while (left > 0 && draw(0, 3) > 0) {
        lane.push_back(draw(0, left));
        left -= lane.back();
        for (std::int64_t p = 0; p < lane.back(); ++p) places.push_back(p);
      }
      lens.push_back(lane);
      plain.pos.insert(plain.pos.end(), static_cast<std::size_t>(left), -1);
      plain.pos.insert(plain.pos.end(), places.begin(), places.end());
    }
    index = packed(plain.S, lens);
  } else {
    plain.C = draw(1, 5);
    plain.R = plain.B;
    Tensor row;
    if (draw(0, 1) == 1) {
      plain.R = draw(1, 3);
      plain.row = draw.list(plain.B, -2, plain.R);
      row = i64(plain.row, {plain.B});
    }
    plain.pos = draw.list(plain.B * plain.S, -2, plain.C + 1);
    plain.table = draw.list(plain.R * plain.C, -3, 9);
    std::vector<BlockTable> every;
    if (draw(0, 1) == 1) {
      plain.m = draw(2, 4);
      plain.blocks = draw(1, 3);
      plain.block_table = draw.list(plain.R * plain.blocks, -3, 9);
      every.push_back({5, Tensor::zeros(DType::i64, {plain.R, 1})});
      every.push_back({plain.m, i64(plain.block_table, {plain.R, plain.blocks})});
    }
    index = Index::make(i64(plain.pos, {plain.B, plain.S}), i64(plain.table, {plain.R, plain.C}), row, every);
    if (draw(0, 1) == 1) plain.m = 1;
  }
  if (plain.kind == IndexKind::whole && draw(0, 1) == 1) plain.m = draw(2, 5);
  if (plain.m > 1) index = index->every(plain.m);
  if (draw(0, 1) == 1) {
    plain.window = draw(1, 4);
    index = index->window(plain.window);
  }
  const std::int64_t extra = draw(0, 2);
  if (extra == 1) {
    plain.k = draw(1, 3);
    plain.columns = draw.list(plain.B * plain.S * plain.k, -2, plain.width() + 1);
    index = index->select(i64(plain.columns, {plain.B, plain.S, plain.k}));
  } else if (extra == 2 && plain.kind == IndexKind::tabled && plain.m == 1) {
    plain.draft = true;
    plain.slots = draw.list(plain.B * plain.S, -3, 9);
    for (std::int64_t n = 0; n < plain.B * plain.S * plain.S; ++n) plain.sees.push_back(static_cast<std::uint8_t>(draw(0, 1)));
    index = index->draft(i64(plain.slots, {plain.B, plain.S}), Tensor::of_bools(plain.sees, {plain.B, plain.S, plain.S}));
  }
  return {plain, *index};
}

}  // namespace

TEST_CASE("B1-B6: visible and mask are the laws, on random tiny indices") {
  int whole = 0, packs = 0, blocks = 0, drafts = 0, selections = 0;
  std::size_t wrong = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const auto [plain, index] = random_index(seed);
    const Tensor seen = mask(index);
    REQUIRE(seen.shape() == Shape{plain.B, plain.S, plain.mask_width()});
    REQUIRE(seen.dtype() == DType::boolean);
    for (std::int64_t b = 0; b < plain.B; ++b) {
      for (std::int64_t i = 0; i < plain.S; ++i) {
        for (std::int64_t j = 0; j < plain.mask_width(); ++j) {
          const bool law = plain.sees_entry(b, i, j);
          if (visible(index, b, i, j) != law || seen.integer(Shape{b, i, j}) != (law ? 1 : 0)) {
            if (++wrong == 1) FAIL_CHECK("seed " << seed << " lane " << b << " token " << i << " column " << j << " law " << law);
          }
        }
        // Arguments outside are not seen, and never a fault.
        if (visible(index, b, i, -1) || visible(index, b, i, plain.mask_width()) || visible(index, plain.B, i, 0) || visible(index, b, plain.S, 0) ||
            visible(index, -1, i, 0) || visible(index, b, -1, 0) || visible(index, b, i, std::int64_t{1} << 62)) {
          ++wrong;
        }
      }
    }
    whole += plain.kind == IndexKind::whole;
    packs += plain.kind == IndexKind::packed;
    blocks += plain.m > 1;
    drafts += plain.draft;
    selections += plain.k > 0;
  }
  CHECK(wrong == 0);
  for (const int count : {whole, packs, blocks, drafts, selections}) CHECK(count > 200);
}

TEST_CASE("A2, B7, C3: positions, targets and the lane's bounds, on random tiny indices") {
  std::size_t wrong = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const auto [plain, index] = random_index(seed);
    const IndexAbi abi(index);
    const IndexView view(*abi.get());
    REQUIRE(view.table_columns() == plain.width());
    REQUIRE(view.columns() == plain.width() + (plain.draft ? plain.S : 0));
    REQUIRE(view.choices() == plain.k);
    for (std::int64_t b = 0; b < plain.B; ++b) {
      std::int64_t greatest = -1;
      for (std::int64_t i = 0; i < plain.S; ++i) {
        greatest = std::max(greatest, plain.position(b, i));
        wrong += view.position(b, i) != plain.position(b, i);
        wrong += view.is_real(b, i) != (plain.position(b, i) >= 0);
        if (plain.kind == IndexKind::tabled) wrong += view.target(b, i) != plain.target(b, i);
        for (std::int64_t j = -1; j <= view.columns(); ++j) wrong += view.sees(b, i, j) != plain.sees_column(b, i, j);
      }
      wrong += view.least(b) != plain.least(b);
      wrong += view.greatest(b) != greatest;
      wrong += view.row(b) != (plain.kind == IndexKind::tabled ? plain.row_of(b) : b);
    }
    if (wrong != 0) {
      FAIL_CHECK("seed " << seed);
      break;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("B1 by hand: a window of four at position five sees columns 2 to 5") {
  const Index index = Index::make(i64({5}, {1, 1}), i64({0, 1, -1, 3, 4, 5, 6, 7}, {1, 8})).window(4);
  CHECK(whole_numbers(mask(index)) == Integers{0, 0, 1, 1, 1, 1, 0, 0});  // column 2 is a hole, and seen
}

TEST_CASE("B2 by hand: packed sequences do not see each other") {
  CHECK(whole_numbers(mask(packed(4, {{2, 1}}))) == Integers{0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1});
}

TEST_CASE("B1 in blocks by hand: a block is seen once it is closed") {
  const Index index = Index::make(i64({2, 3, 4, 5}, {1, 4}), i64({0, 1, 2, 3, 4, 5}, {1, 6}), {}, {{3, i64({0, 1}, {1, 2})}}).every(3);
  CHECK(whole_numbers(mask(index)) == Integers{1, 0, 1, 0, 1, 0, 1, 1});
  CHECK(whole_numbers(mask(index.window(3))) == Integers{1, 0, 1, 0, 1, 0, 0, 1});
}

TEST_CASE("B4 by hand: a tree of three drafts after two stored positions") {
  // Token 0 at 2; tokens 1 and 2 at 3 are its children. The table's column 2 and later hold nothing of the draft.
  const Index index = Index::make(i64({2, 3, 3}, {1, 3}), i64({0, 1, 2, 3}, {1, 4}))
                          .draft(i64({7, 8, 9}, {1, 3}), bools({1, 0, 0, 1, 1, 0, 1, 0, 1}, {1, 3, 3}));
  CHECK(whole_numbers(mask(index)) == Integers{1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1});
  CHECK(whole_numbers(mask(index.window(2))) == Integers{0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1});
}

TEST_CASE("B1: the greatest position sees every column and overflows nothing") {
  constexpr std::int64_t greatest = 9223372036854775807;
  const Index index = Index::make(i64({greatest}, {1, 1}), i64({0, 1}, {1, 2}), {}, {{2, i64({0}, {1, 1})}});
  CHECK(whole_numbers(mask(index)) == Integers{1, 1});
  CHECK(whole_numbers(mask(index.window(1))) == Integers{0, 0});
  CHECK(whole_numbers(mask(index.window(greatest))) == Integers{0, 1});
  CHECK(whole_numbers(mask(index.every(2))) == Integers{1});
  CHECK(whole_numbers(positions(index)) == Integers{1});
}

TEST_CASE("integers of any stride and both widths") {
  std::int32_t narrow[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const Tensor strided = Tensor::borrow(narrow, DType::i32, {2, 2, 2}, {4, 2, 1});
  const quire_tensor view = strided.view();
  const IntegerView numbers_of(&view);
  CHECK(numbers_of(1, 0, 1) == 6);
  CHECK(numbers_of.size(2) == 2);
  const Tensor every_other = Tensor::borrow(narrow, DType::i32, {4}, {2});
  const quire_tensor lone = every_other.view();
  CHECK(IntegerView(&lone)(3) == 7);
  CHECK_FALSE(IntegerView().defined());
  CHECK_FALSE(IntegerView(nullptr).defined());
}

TEST_CASE("strided index tensors read as dense ones do") {
  const Index dense = Index::make(i64({1, 2, 0, 3}, {2, 2}), i64({5, 6, 7, 8, 0, 1, 2, 3}, {2, 4})).select(i64({0, 1, 1, 2, 0, 0, 3, 2}, {2, 2, 2}));
  const auto spread = [](const Tensor& tensor, std::int64_t stride) {
    const Tensor wide = Tensor::empty_padded(tensor.dtype(), tensor.shape(), stride);
    const Tensor flat = tensor.clone();
    std::int64_t n = 0;
    for_elements(wide, [&](std::int64_t, std::byte* element) {
      std::memcpy(element, flat.raw() + n++ * size_of(tensor.dtype()), static_cast<std::size_t>(size_of(tensor.dtype())));
    });
    return wide;
  };
  const Index wide = Index::make(spread(dense.pos(), 3), spread(dense.table(), 9)).select(spread(dense.columns(), 7));
  CHECK(same_bits(mask(wide), mask(dense)));
  CHECK(same_bits(positions(wide), positions(dense)));
}
