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

// Columns whose keys are widened and turned at a time: 128 keys of 64 columns are 64 KiB.
constexpr std::int64_t tile = 64;

// A column that a token sees, for one kv head. Null parts belong to a hole: score 0, zero value (D2).
struct Column {
  const std::byte* key;
  const std::byte* value;
};

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
    const std::int64_t tokens = view_.batch() * view_.seq();
    const auto columns = static_cast<double>(view_.is_selecting() ? view_.choices() : view_.columns());
    const double work = static_cast<double>(tokens * q_.size(2)) * columns * static_cast<double>(size_ + value_size_);
    parallel_for(tokens * kv_heads_, work, [&](std::int64_t n) {
      const std::int64_t token = n / kv_heads_;
      attend_group(token / view_.seq(), token % view_.seq(), n % kv_heads_);
    });
  }

 private:
  // The keys and values that stand in a pool's slot, if it is in that pool.
  Column pool_column(std::int64_t slot, std::int64_t head) const {
    const std::int64_t k_slot = slot_in(k_pool_, slot);
    const std::int64_t v_slot = slot_in(v_pool_, slot);
    return {k_slot < 0 ? nullptr : k_pool_.at(k_slot, head), v_slot < 0 ? nullptr : v_pool_.at(v_slot, head)};
  }
  Column token_column(std::int64_t b, std::int64_t place, std::int64_t head) const { return {k_.at(b, place, head), v_.at(b, place, head)}; }

  Column column(std::int64_t b, std::int64_t j, std::int64_t head) const {
    if (j >= view_.table_columns()) return token_column(b, j - view_.table_columns(), head);  // a draft's token
    if (view_.is_tabled()) return pool_column(view_.slot(b, j), head);
    const std::int64_t place = view_.block_size() == 1 ? j : view_.closing_token(b, j);
    return place < 0 ? Column{nullptr, nullptr} : token_column(b, place, head);
  }

  // B1-B5: the columns that a token sees, in order.
  void collect(std::int64_t b, std::int64_t i, std::int64_t head, std::vector<Column>& columns) const {
    columns.clear();
    if (view_.is_selecting()) {
      for (std::int64_t c = 0; c < view_.choices(); ++c) {
        const std::int64_t j = view_.choice(b, i, c);
        if (view_.sees(b, i, j)) columns.push_back(column(b, j, head));
      }
      return;
    }
    const bool reads_tokens = !view_.is_tabled() && view_.block_size() == 1;
    const ColumnRange range = reads_tokens ? view_.token_range(b, i) : view_.table_range(b, i);
    for (std::int64_t j = range.begin; j < range.end; ++j) columns.push_back(column(b, j, head));
    for (std::int64_t j = 0; view_.is_draft() && j < view_.seq(); ++j) {
      if (view_.sees_draft_token(b, i, j)) columns.push_back(token_column(b, j, head));
    }
  }

  // One token and one kv head: the query heads that read it share the widened keys and values (D1).
  void attend_group(std::int64_t b, std::int64_t i, std::int64_t kv_head) const {
    std::vector<Column> columns;
    collect(b, i, kv_head, columns);
    const auto count = static_cast<std::int64_t>(columns.size());
    const auto doubles = [](std::int64_t n) { return std::vector<double>(static_cast<std::size_t>(n)); };
    std::vector<double> queries = doubles(group_ * size_), weights = doubles(group_ * count), sums = doubles(group_ * value_size_);
    for (std::int64_t g = 0; g < group_; ++g) widen(q_.dtype(), q_.at(b, i, kv_head * group_ + g), &queries[offset(g, size_)], size_);
    score(columns, queries, weights);
    std::vector<double> denominators = doubles(group_);
    for (std::int64_t g = 0; g < group_; ++g) {
      denominators[static_cast<std::size_t>(g)] = soften(b, i, kv_head * group_ + g, {weights.data() + g * count, static_cast<std::size_t>(count)});
    }
    std::vector<double> value = doubles(value_size_);
    for (std::int64_t c = 0; c < count; ++c) {
      const std::byte* row = columns[static_cast<std::size_t>(c)].value;
      if (row == nullptr) continue;
      widen(v_.dtype(), row, value.data(), value_size_);
      for (std::int64_t g = 0; g < group_; ++g) {
        kernels_.accumulate(&sums[offset(g, value_size_)], value.data(), weights[offset(g, count) + static_cast<std::size_t>(c)], value_size_);
      }
    }
    for (std::int64_t g = 0; g < group_; ++g) {
      double* sum = &sums[offset(g, value_size_)];
      // D3: no column, no weight: zeros.
      for (std::int64_t d = 0; count > 0 && d < value_size_; ++d) sum[d] /= denominators[static_cast<std::size_t>(g)];
      narrow(q_.dtype(), sum, out_.at(b, i, kv_head * group_ + g), value_size_);
    }
  }

  static std::size_t offset(std::int64_t row, std::int64_t size) { return static_cast<std::size_t>(row * size); }

  // scale * q.k, then the softcap; 0 for a hole.
  void score(const std::vector<Column>& columns, const std::vector<double>& queries, std::vector<double>& scores) const {
    const auto count = static_cast<std::int64_t>(columns.size());
    std::vector<double> row(static_cast<std::size_t>(size_)), keys(static_cast<std::size_t>(size_ * tile));
    for (std::int64_t begin = 0; begin < count; begin += tile) {
      const std::int64_t width = std::min(tile, count - begin);
      for (std::int64_t c = 0; c < width; ++c) {
        const std::byte* key = columns[static_cast<std::size_t>(begin + c)].key;
        if (key != nullptr) widen(k_.dtype(), key, row.data(), size_);
        for (std::int64_t d = 0; d < size_; ++d) keys[static_cast<std::size_t>(d * tile + c)] = key != nullptr ? row[static_cast<std::size_t>(d)] : 0.0;
      }
      for (std::int64_t g = 0; g < group_; ++g) {
        double* score = scores.data() + g * count + begin;
        kernels_.scores(keys.data(), tile, queries.data() + g * size_, size_, score, width);
        for (std::int64_t c = 0; c < width; ++c) score[c] = columns[static_cast<std::size_t>(begin + c)].key != nullptr ? scale_ * score[c] : 0.0;
        if (softcap_ > 0) kernels_.softcap(score, softcap_, width);
      }
    }
  }

  // Scores to weights exp(s - max), in place; answers their sum with the sink's share (D4), and stores lse (D3).
  double soften(std::int64_t b, std::int64_t i, std::int64_t head, std::span<double> scores) const {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    const double sink = sinks_.defined() && view_.is_real(b, i) ? widen(sinks_.dtype(), sinks_.at(head)) : nothing;
    if (scores.empty()) {
      narrow(DType::f32, sink, lse_.at(b, i, head));
      return 0;
    }
    double greatest = sink;
    for (const double score : scores) greatest = score > greatest || score != score ? score : greatest;
    kernels_.weights(scores.data(), greatest, static_cast<std::int64_t>(scores.size()));
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
