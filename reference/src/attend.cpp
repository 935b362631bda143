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

// Where a column's keys and values stand: a slot of the pools, a place of the call's own tokens, or nowhere (a hole, D2).
struct Column {
  enum class In { hole, pool, call } in = In::hole;
  std::int64_t number = 0;
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
    // At most so many columns are seen by a token: what it costs is in those, not in the table's width.
    std::int64_t columns = view_.is_selecting() ? view_.choices() : view_.columns();
    if (view_.has_window()) columns = std::min(columns, std::min(columns, view_.window()) + (view_.is_draft() ? view_.seq() : 0));
    // Selecting tokens read columns of their own.
    const std::int64_t fit = most_score_bytes / (static_cast<std::int64_t>(sizeof(double)) * group_ * std::max<std::int64_t>(columns, 1));
    const std::int64_t together = view_.is_selecting() ? 1 : std::clamp<std::int64_t>(fit, 1, most_tokens);
    const std::int64_t blocks = (view_.seq() + together - 1) / together;
    const double work = static_cast<double>(view_.batch() * view_.seq() * q_.size(2)) * static_cast<double>(columns) * static_cast<double>(size_ + value_size_);
    // A task takes as many kv heads as leave a task for every thread: they stand side by side in a pool's row, which is then visited once.
    const std::int64_t heads = std::clamp<std::int64_t>(view_.batch() * blocks * kv_heads_ / std::max(thread_count(), 1), 1, kv_heads_);
    const std::int64_t parts = (kv_heads_ + heads - 1) / heads;
    parallel_for(view_.batch() * blocks * parts, work, [&](std::int64_t n) {
      const std::int64_t begin = n / parts % blocks * together;
      const std::int64_t head = n % parts * heads;
      attend_block(n / parts / blocks, begin, std::min(begin + together, view_.seq()), head, std::min(head + heads, kv_heads_));
    });
  }

 private:
  Column column(std::int64_t b, std::int64_t j) const {
    if (j >= view_.table_columns()) return {Column::In::call, j - view_.table_columns()};  // a draft's token
    if (view_.is_tabled()) {
      const std::int64_t slot = slot_in(k_pool_, view_.slot(b, j));
      return slot < 0 ? Column{} : Column{Column::In::pool, slot};
    }
    const std::int64_t place = view_.block_size() == 1 ? j : view_.closing_token(b, j);
    return place < 0 ? Column{} : Column{Column::In::call, place};
  }
  const std::byte* key(std::int64_t b, const Column& column, std::int64_t head) const {
    return column.in == Column::In::pool ? k_pool_.at(column.number, head) : k_.at(b, column.number, head);
  }
  const std::byte* value(std::int64_t b, const Column& column, std::int64_t head) const {
    return column.in == Column::In::pool ? v_pool_.at(column.number, head) : v_.at(b, column.number, head);
  }

  // B1-B5: the columns that a block's tokens see, in order, and which of them each token sees.
  std::vector<Column> collect(std::int64_t b, std::int64_t begin, std::int64_t end, std::vector<Reads>& reads) const {
    std::vector<Column> columns;
    if (view_.is_selecting()) {
      for (std::int64_t c = 0; c < view_.choices(); ++c) {
        const std::int64_t j = view_.choice(b, begin, c);
        if (view_.sees(b, begin, j)) columns.push_back(column(b, j));
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
    for (std::int64_t j = all.begin; j < all.end; ++j) columns.push_back(column(b, j));
    for (Reads& token : reads) {
      if (token.range.begin == token.range.end) token.range = {};
      else token.range = {token.range.begin - all.begin, token.range.end - all.begin};
    }
    for (std::int64_t j = 0; view_.is_draft() && j < view_.seq(); ++j) {
      for (std::int64_t i = begin; i < end; ++i) {
        if (view_.sees_draft_token(b, i, j)) reads[static_cast<std::size_t>(i - begin)].single.push_back(static_cast<std::int64_t>(columns.size()));
      }
      columns.push_back({Column::In::call, j});
    }
    return columns;
  }

  // One query head of one token: its widened query, its scores (weights later) and its sum of values.
  struct Query {
    std::int64_t token, head;
    const Reads* reads;
    std::vector<double> query, weights, sum;
    double denominator = 0;
  };

  // A block of tokens and some kv heads. Query heads that read one kv head (D1), and the block's tokens, share the widened keys and values.
  void attend_block(std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t first_head, std::int64_t last_head) const {
    std::vector<Reads> reads(static_cast<std::size_t>(end - begin));
    const std::vector<Column> columns = collect(b, begin, end, reads);
    const std::int64_t per_kv_head = (end - begin) * group_;
    std::vector<Query> queries;  // by kv head
    for (std::int64_t n = 0; n < (last_head - first_head) * per_kv_head; ++n) {
      const std::int64_t token = begin + n % per_kv_head / group_;
      const Reads& seen = reads[static_cast<std::size_t>(token - begin)];
      Query query{token, (first_head + n / per_kv_head) * group_ + n % group_, &seen, doubles(size_), doubles(seen.count()), doubles(value_size_)};
      widen(q_.dtype(), q_.at(b, token, query.head), query.query.data(), size_);
      queries.push_back(std::move(query));
    }
    const auto for_tiles = [&](const auto& body) {
      for (std::int64_t first = 0; first < static_cast<std::int64_t>(columns.size()); first += tile) {
        const std::span<const Column> part = std::span(columns).subspan(static_cast<std::size_t>(first)).first(
            static_cast<std::size_t>(std::min(tile, static_cast<std::int64_t>(columns.size()) - first)));
        for (std::int64_t head = first_head; head < last_head; ++head) {
          body(first, part, head, std::span(queries).subspan(static_cast<std::size_t>((head - first_head) * per_kv_head), static_cast<std::size_t>(per_kv_head)));
        }
      }
    };
    const Tiles tiles(*this, b);
    for_tiles([&](std::int64_t first, std::span<const Column> part, std::int64_t head, std::span<Query> readers) {
      const double* keys = tiles.keys(part, head);
      for (Query& query : readers) {
        for_parts(*query.reads, first, static_cast<std::int64_t>(part.size()), [&](std::int64_t c, std::int64_t width, std::int64_t at) {
          double* score = query.weights.data() + at;
          kernels_.scores(keys + c, tile_stride, query.query.data(), size_, score, width);
          for (std::int64_t i = 0; i < width; ++i) score[i] = part[static_cast<std::size_t>(c + i)].in != Column::In::hole ? scale_ * score[i] : 0.0;
        });
      }
    });
    for (Query& query : queries) query.denominator = soften(b, query.token, query.head, query.weights);
    for_tiles([&](std::int64_t first, std::span<const Column> part, std::int64_t head, std::span<Query> readers) {
      const double* values = tiles.values(part, head);
      for (Query& query : readers) {
        for_parts(*query.reads, first, static_cast<std::int64_t>(part.size()), [&](std::int64_t c, std::int64_t width, std::int64_t at) {
          kernels_.accumulate(query.sum.data(), query.weights.data() + at, values + c * value_size_, value_size_, width, value_size_);
        });
      }
    });
    for (Query& query : queries) {
      // D3: no column, no weight: zeros.
      for (std::int64_t d = 0; query.reads->count() > 0 && d < value_size_; ++d) query.sum[static_cast<std::size_t>(d)] /= query.denominator;
      narrow(q_.dtype(), query.sum.data(), out_.at(b, query.token, query.head), value_size_);
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

  // A tile's columns widened for one kv head; holes are zeros.
  class Tiles {
   public:
    Tiles(const Attend& attend, std::int64_t b)
        : attend_(attend), b_(b), rows_(doubles(tile * std::max(attend.size_ + 8, attend.value_size_))), keys_(doubles(attend.size_ * tile_stride)) {}

    /// keys[d * tile_stride + c]
    const double* keys(std::span<const Column> part, std::int64_t head) const {
      const std::int64_t stride = attend_.size_ + 8;
      for (std::size_t c = 0; c < part.size(); ++c) {
        double* row = rows_.data() + static_cast<std::int64_t>(c) * stride;
        if (part[c].in != Column::In::hole) widen(attend_.k_.dtype(), attend_.key(b_, part[c], head), row, attend_.size_);
        else std::fill(row, row + attend_.size_, 0.0);
      }
      attend_.kernels_.turn(rows_.data(), stride, static_cast<std::int64_t>(part.size()), attend_.size_, keys_.data(), tile_stride);
      return keys_.data();
    }
    /// values[c * value_size + v]
    const double* values(std::span<const Column> part, std::int64_t head) const {
      for (std::size_t c = 0; c < part.size(); ++c) {
        double* row = rows_.data() + static_cast<std::int64_t>(c) * attend_.value_size_;
        if (part[c].in != Column::In::hole) widen(attend_.v_.dtype(), attend_.value(b_, part[c], head), row, attend_.value_size_);
        else std::fill(row, row + attend_.value_size_, 0.0);
      }
      return rows_.data();
    }

   private:
    const Attend& attend_;
    std::int64_t b_;
    mutable std::vector<double> rows_, keys_;
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
    if (sink != nothing) sum += sink == greatest ? 1.0 : math::exp(sink - greatest);  // also where both are infinite
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
