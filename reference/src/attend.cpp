// attend: softmax over the columns that a token sees, in float64, in the order of the columns (laws D).
#include "extend.h"
#include "kernels.h"
#include "ops.h"
#include "parallel.h"
#include "transcendental.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace quire::reference {

namespace {

// Columns whose keys and values are widened at a time; 8 doubles more per row keep rows from falling on the same cache lines.
constexpr std::int64_t tile = 64;
constexpr std::int64_t tile_stride = tile + 8;

// Tokens of a lane that share the widened columns, bounded by what their scores take.
constexpr std::int64_t most_tokens = 16;
constexpr std::int64_t most_score_bytes = std::int64_t{8} << 20;

// A column, for one kv head. Null belongs to a hole: score 0, zero value (D2).
struct Column {
  const std::byte* key;
  const std::byte* value;
};

// The columns that a token sees among those of its block: a range, then single ones (a draft's tokens).
struct Reads {
  ColumnRange range;
  std::vector<std::int64_t> single;
  std::int64_t count() const { return range.end - range.begin + static_cast<std::int64_t>(single.size()); }
};

std::vector<double> doubles(std::int64_t n) { return std::vector<double>(static_cast<std::size_t>(n)); }

class Attend {
 public:
  explicit Attend(const quire_attend_args& args)
      : view_(*args.index),
        q_(args.q),
        k_(args.k),
        v_(args.v),
        k_pool_(args.k_pool),
        v_pool_(args.v_pool),
        sinks_(args.sinks),
        out_(args.out),
        lse_(args.lse),
        scale_(args.scale),
        softcap_(args.softcap),
        size_(q_.size(3)),
        value_size_(v_.size(3)),
        kv_heads_(k_.size(2)),
        group_(q_.size(2) / kv_heads_),
        kernels_(kernels()) {}

  void run() {
    if (k_pool_.defined()) store(view_, k_, k_pool_);  // D1: extend both pools
    if (v_pool_.defined()) store(view_, v_, v_pool_);
    const std::int64_t columns = view_.is_selecting() ? view_.choices() : view_.columns();
    // Selecting tokens read columns of their own.
    const std::int64_t fit = most_score_bytes / (static_cast<std::int64_t>(sizeof(double)) * group_ * std::max<std::int64_t>(columns, 1));
    const std::int64_t together = view_.is_selecting() ? 1 : std::clamp<std::int64_t>(fit, 1, most_tokens);
    const std::int64_t blocks = (view_.seq() + together - 1) / together;
    const double work = static_cast<double>(view_.batch() * view_.seq() * q_.size(2)) * static_cast<double>(columns) * static_cast<double>(size_ + value_size_);
    parallel_for(view_.batch() * blocks * kv_heads_, work, [&](std::int64_t n) {
      const std::int64_t begin = n / kv_heads_ % blocks * together;
      attend_block(n / kv_heads_ / blocks, begin, std::min(begin + together, view_.seq()), n % kv_heads_);
    });
  }

 private:
  Column pool_column(std::int64_t slot, std::int64_t head) const {
    slot = slot_in(k_pool_, slot);
    return slot < 0 ? Column{nullptr, nullptr} : Column{k_pool_.at(slot, head), v_pool_.at(slot, head)};
  }
  Column token_column(std::int64_t b, std::int64_t place, std::int64_t head) const { return {k_.at(b, place, head), v_.at(b, place, head)}; }

  Column column(std::int64_t b, std::int64_t j, std::int64_t head) const {
    if (j >= view_.table_columns()) return token_column(b, j - view_.table_columns(), head);  // a draft's token
    if (view_.is_tabled()) return pool_column(view_.slot(b, j), head);
    const std::int64_t place = view_.block_size() == 1 ? j : view_.closing_token(b, j);
    return place < 0 ? Column{nullptr, nullptr} : token_column(b, place, head);
  }

  // B1-B5: the columns that a block's tokens see, in order, and which of them each token sees.
  std::vector<Column> collect(std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t head, std::vector<Reads>& reads) const {
    std::vector<Column> columns;
    if (view_.is_selecting()) {
      for (std::int64_t c = 0; c < view_.choices(); ++c) {
        const std::int64_t j = view_.choice(b, begin, c);
        if (view_.sees(b, begin, j)) columns.push_back(column(b, j, head));
      }
      reads[0].range = {0, static_cast<std::int64_t>(columns.size())};
      return columns;
    }
    const bool reads_tokens = !view_.is_tabled() && view_.block_size() == 1;
    ColumnRange all;
    for (std::int64_t i = begin; i < end; ++i) {
      const ColumnRange range = reads_tokens ? view_.token_range(b, i) : view_.table_range(b, i);
      reads[static_cast<std::size_t>(i - begin)].range = range;
      if (range.begin == range.end) continue;
      all = all.begin == all.end ? range : ColumnRange{std::min(all.begin, range.begin), std::max(all.end, range.end)};
    }
    for (std::int64_t j = all.begin; j < all.end; ++j) columns.push_back(column(b, j, head));
    for (Reads& token : reads) {
      if (token.range.begin == token.range.end) token.range = {};
      else token.range = {token.range.begin - all.begin, token.range.end - all.begin};
    }
    for (std::int64_t j = 0; view_.is_draft() && j < view_.seq(); ++j) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (view_.sees_draft_token(b, i, j)) reads[static_cast<std::size_t>(i - begin)].single.push_back(static_cast<std::int64_t>(columns.size()));
      }
      columns.push_back(token_column(b, j, head));
    }
    return columns;
  }

  // A block of tokens and one kv head: its query heads (D1) and tokens share the widened keys and values.
  void attend_block(std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t kv_head) const {
    std::vector<Reads> reads(static_cast<std::size_t>(end - begin));
    const std::vector<Column> columns = collect(b, begin, end, kv_head, reads);
    const std::int64_t queries = (end - begin) * group_;  // token-major
    const auto reads_of = [&](std::int64_t query) -> const Reads& { return reads[static_cast<std::size_t>(query / group_)]; };
    const auto q_row = [&](std::int64_t query) { return q_.at(b, begin + query / group_, kv_head * group_ + query % group_); };

    std::vector<std::vector<double>> weights;  // scores first
    std::vector<double> query_values = doubles(queries * size_), sums = doubles(queries * value_size_), denominators = doubles(queries);
    for (std::int64_t n = 0; n < queries; ++n) {
      widen(q_.dtype(), q_row(n), query_values.data() + n * size_, size_);
      weights.push_back(doubles(reads_of(n).count()));
    }
    Tiles tiles(*this, columns);
    for (std::int64_t first = 0; first < tiles.count(); first += tile) {
      const double* keys = tiles.keys(first);
      for (std::int64_t n = 0; n < queries; ++n) {
        for_parts(reads_of(n), first, tiles.width(first), [&](std::int64_t c, std::int64_t width, std::int64_t at) {
          double* score = weights[static_cast<std::size_t>(n)].data() + at;
          kernels_.scores(keys + c, tile_stride, query_values.data() + n * size_, size_, score, width);
          for (std::int64_t i = 0; i < width; ++i) score[i] = columns[static_cast<std::size_t>(first + c + i)].key != nullptr ? scale_ * score[i] : 0.0;
        });
      }
    }
    for (std::int64_t n = 0; n < queries; ++n) {
      denominators[static_cast<std::size_t>(n)] = soften(b, begin + n / group_, kv_head * group_ + n % group_, weights[static_cast<std::size_t>(n)]);
    }
    for (std::int64_t first = 0; first < tiles.count(); first += tile) {
      const double* values = tiles.values(first);
      for (std::int64_t n = 0; n < queries; ++n) {
        for_parts(reads_of(n), first, tiles.width(first), [&](std::int64_t c, std::int64_t width, std::int64_t at) {
          kernels_.accumulate(sums.data() + n * value_size_, weights[static_cast<std::size_t>(n)].data() + at, values + c * value_size_, value_size_, width, value_size_);
        });
      }
    }
    for (std::int64_t n = 0; n < queries; ++n) {
      double* sum = sums.data() + n * value_size_;
      // D3: no column, no weight: zeros.
      for (std::int64_t d = 0; reads_of(n).count() > 0 && d < value_size_; ++d) sum[d] /= denominators[static_cast<std::size_t>(n)];
      narrow(q_.dtype(), sum, out_.at(b, begin + n / group_, kv_head * group_ + n % group_), value_size_);
    }
  }

  // Calls body(c, width, at) for each run of a token's columns inside the tile that begins at `first`: from column c of the tile on, whose
  // places among the token's columns begin at `at`.
  template <typename Body>
  static void for_parts(const Reads& reads, std::int64_t first, std::int64_t width, const Body& body) {
    const std::int64_t begin = std::max(reads.range.begin, first);
    const std::int64_t end = std::min(reads.range.end, first + width);
    if (begin < end) body(begin - first, end - begin, begin - reads.range.begin);
    for (std::size_t s = 0; s < reads.single.size(); ++s) {
      const std::int64_t c = reads.single[s] - first;
      if (c >= 0 && c < width) body(c, 1, reads.range.end - reads.range.begin + static_cast<std::int64_t>(s));
    }
  }

  // The columns of a block, widened tile by tile; holes are zeros.
  class Tiles {
   public:
    Tiles(const Attend& attend, const std::vector<Column>& columns)
        : attend_(attend),
          columns_(columns),
          rows_(doubles(tile * std::max(attend.size_ + 8, attend.value_size_))),
          keys_(doubles(attend.size_ * tile_stride)) {}

    std::int64_t count() const { return static_cast<std::int64_t>(columns_.size()); }
    std::int64_t width(std::int64_t first) const { return std::min(tile, count() - first); }

    /// keys[d * tile_stride + c]
    const double* keys(std::int64_t first) {
      const std::int64_t stride = attend_.size_ + 8;
      for (std::int64_t c = 0; c < width(first); ++c) {
        widen_or_clear(attend_.k_.dtype(), columns_[static_cast<std::size_t>(first + c)].key, rows_.data() + c * stride, attend_.size_);
      }
      attend_.kernels_.turn(rows_.data(), stride, width(first), attend_.size_, keys_.data(), tile_stride);
      return keys_.data();
    }
    /// values[c * value_size + v]
    const double* values(std::int64_t first) {
      for (std::int64_t c = 0; c < width(first); ++c) {
        widen_or_clear(attend_.v_.dtype(), columns_[static_cast<std::size_t>(first + c)].value, rows_.data() + c * attend_.value_size_, attend_.value_size_);
      }
      return rows_.data();
    }

   private:
    static void widen_or_clear(DType dtype, const std::byte* from, double* to, std::int64_t n) {
      if (from != nullptr) {
        widen(dtype, from, to, n);
      } else {
        std::fill(to, to + n, 0.0);
      }
    }

    const Attend& attend_;
    const std::vector<Column>& columns_;
    std::vector<double> rows_, keys_;
  };

  // Scores to weights exp(s - max), in place; answers their sum with the sink's share (D4), and stores lse (D3).
  double soften(std::int64_t b, std::int64_t i, std::int64_t head, std::span<double> scores) const {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    const double sink = sinks_.defined() && view_.is_real(b, i) ? widen(sinks_.dtype(), sinks_.at(head)) : nothing;
    if (scores.empty()) {
      narrow(DType::f32, sink, lse_.at(b, i, head));
      return 0;
    }
    const auto count = static_cast<std::int64_t>(scores.size());
    if (softcap_ > 0) kernels_.softcap(scores.data(), softcap_, count);  // 0 stays 0: a hole's too
    double greatest = sink;
    for (const double score : scores) greatest = score > greatest || score != score ? score : greatest;
    kernels_.weights(scores.data(), greatest, count);
    double sum = 0;
    for (const double weight : scores) sum += weight;
    if (sink != nothing) sum += math::exp(sink - greatest);
    // An infinite score is its own sum of exps; the formula would subtract infinities.
    narrow(DType::f32, std::isinf(greatest) ? greatest : greatest + math::log(sum), lse_.at(b, i, head));
    return sum;
  }

  IndexView view_;
  RowView q_, k_, v_, k_pool_, v_pool_, sinks_, out_, lse_;
  double scale_, softcap_;
  std::int64_t size_, value_size_, kv_heads_, group_;
  const Kernels& kernels_;
};

}  // namespace

void attend(const quire_attend_args& args) { Attend(args).run(); }

}  // namespace quire::reference
