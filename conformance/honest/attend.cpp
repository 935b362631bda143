// attend in the honest backend (laws D).
#include "extend.h"
#include "ops.h"
#include "softmax.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace quire::conformance::honest {

namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

Arithmetic arithmetic_of(const Setting& setting) {
  switch (setting.fault) {
    case Fault::attend_products_tf32: return Arithmetic(setting.options, Format::tf32, false);
    case Fault::attend_products_bf16: return Arithmetic(setting.options, Format::bf16, false);
    case Fault::attend_in_half: return Arithmetic(setting.options, Format::half, true);
    default: return Arithmetic(setting.options);
  }
}

// A column of a token for one kv head; null belongs to a hole.
struct Column {
  const std::byte* key = nullptr;
  const std::byte* value = nullptr;
  bool seen = true;  // false only where a fault brings unseen columns in
};

class Attend {
 public:
  Attend(const quire_attend_args& args, const Setting& setting)
      : setting_(setting),
        arithmetic_(arithmetic_of(setting)),
        sight_(*args.index, setting),
        q_(args.q, setting),
        k_(args.k, setting),
        v_(args.v, setting),
        k_pool_(args.k_pool, setting),
        v_pool_(args.v_pool, setting),
        sinks_(args.sinks, setting),
        out_(args.out, setting),
        lse_(args.lse, setting),
        k_before_(k_pool_, setting),
        v_before_(v_pool_, setting),
        scale_(static_cast<float>(args.scale)),
        softcap_(static_cast<float>(args.softcap)) {}

  void run() {
    const IndexView& view = sight_.view();
    const bool lane_by_lane = setting_.is(Fault::lanes_one_after_another);
    if (!lane_by_lane) store_lanes(0, view.batch());  // D1: extend both pools
    for (std::int64_t b = 0; b < view.batch(); ++b) {
      if (lane_by_lane) store_lanes(b, b + 1);
      for (std::int64_t i = 0; i < view.seq(); ++i) attend_token(b, i);
    }
    if (setting_.is(Fault::element_past_output_written)) {
      const float zero = 0;
      write(out_.dtype(), &zero, const_cast<std::byte*>(out_.end()), 1);
    }
  }

 private:
  void store_lanes(std::int64_t begin, std::int64_t end) {
    store(sight_, k_, k_pool_, begin, end, setting_);
    if (!setting_.is(Fault::value_pool_not_extended)) store(sight_, v_, v_pool_, begin, end, setting_);
  }

  Column column(std::int64_t b, std::int64_t j, std::int64_t head) const {
    const IndexView& view = sight_.view();
    if (j >= view.table_columns()) return {k_.at(b, j - view.table_columns(), head), v_.at(b, j - view.table_columns(), head)};
    if (view.is_tabled()) {
      const Rows& keys = k_before_.rows();
      const std::int64_t slot = sight_.slot(b, j, keys.size(0));
      return slot < 0 ? Column{} : Column{keys.at(slot, head), v_before_.rows().at(slot, head)};
    }
    const std::int64_t place = view.block_size() == 1 ? j : sight_.closing_token(b, j);
    return place < 0 ? Column{} : Column{k_.at(b, place, head), v_.at(b, place, head)};
  }

  std::vector<Column> columns_of(std::int64_t b, std::int64_t i, std::int64_t head) const {
    std::vector<Column> columns;
    const IndexView& view = sight_.view();
    const bool brings_unseen =
        (setting_.is(Fault::unseen_times_zero) || setting_.is(Fault::unseen_with_finite_bias)) && !view.is_selecting();
    if (brings_unseen) {
      for (std::int64_t j = 0; j < view.columns(); ++j) {
        columns.push_back(column(b, j, head));
        columns.back().seen = sight_.sees(b, i, j);
      }
      const bool some = std::any_of(columns.begin(), columns.end(), [](const Column& c) { return c.seen; });
      if (!some && !setting_.is(Fault::unseen_with_finite_bias)) columns.clear();
      return columns;
    }
    for (const std::int64_t j : sight_.columns_of(b, i)) {
      const Column one = column(b, j, head);
      if (one.key != nullptr || !setting_.is(Fault::holes_masked)) columns.push_back(one);
    }
    return columns;
  }

  float score(const std::vector<float>& query, const Column& column) const {
    if (column.key == nullptr) return 0;  // D2: a hole
    std::int64_t size = q_.size(3);
    if (setting_.is(Fault::vector_reads_past_row)) {  // vectors of four; at the end of the tensor there is nothing to read
      const std::int64_t whole = (size + 3) / 4 * 4;
      const Rows& keys = k_pool_.defined() ? k_before_.rows() : k_;
      if (column.key + whole * keys.element_bytes() <= keys.end()) size = whole;
    }
    std::vector<float> key(static_cast<std::size_t>(size));
    read(k_.dtype(), column.key, key.data(), size);
    const float product = arithmetic_.dot(query.data(), key.data(), size);
    if (softcap_ <= 0) return scale_ * product;
    if (setting_.is(Fault::softcap_before_scale)) return scale_ * (softcap_ * std::tanh(product / softcap_));
    return softcap_ * std::tanh(scale_ * product / softcap_);  // D4
  }

  float sink_of(std::int64_t b, std::int64_t i, std::int64_t head) const {
    if (!sinks_.defined()) return nothing;
    if (!sight_.view().is_real(b, i) && !setting_.is(Fault::sink_on_padding)) return nothing;  // D3
    const std::int64_t place = setting_.is(Fault::sink_per_kv_head) ? head / (q_.size(2) / k_.size(2)) : head;
    return read(sinks_.dtype(), sinks_.at(place));
  }

  void attend_token(std::int64_t b, std::int64_t i) const {
    const std::int64_t heads = q_.size(2), kv_heads = k_.size(2), group = heads / kv_heads;
    for (std::int64_t head = 0; head < heads; ++head) {
      if (setting_.is(Fault::first_half_of_heads_written) && heads > kv_heads && head >= (heads + 1) / 2) continue;
      const std::int64_t kv_head = setting_.is(Fault::kv_heads_interleaved) ? head % kv_heads : head / group;  // D1
      attend_head(b, i, head, kv_head);
    }
  }

  void attend_head(std::int64_t b, std::int64_t i, std::int64_t head, std::int64_t kv_head) const {
    const std::vector<Column> columns = columns_of(b, i, kv_head);
    // The fault that reads past rows finds ones beyond the query.
    std::vector<float> query(static_cast<std::size_t>(q_.size(3) + 3), 1.0F);
    read(q_.dtype(), q_.at(b, i, head), query.data(), q_.size(3));
    const std::int64_t value_size = v_.size(3);
    std::vector<std::vector<float>> values(columns.size());
    std::vector<Weighed> weighed;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].value != nullptr) {
        values[c].resize(static_cast<std::size_t>(value_size));
        read(v_.dtype(), columns[c].value, values[c].data(), value_size);
      }
      float s = columns[c].seen ? score(query, columns[c]) : nothing;
      if (!columns[c].seen && setting_.is(Fault::unseen_with_finite_bias)) s = -10000.0F;
      // The scores of two passes lie in memory between them.
      if (setting_.options.attention == HonestOptions::Attention::direct) s = rounded_to(setting_.options.stored, s);
      weighed.push_back({s, columns[c].value != nullptr ? values[c].data() : nullptr});
    }
    finish(b, i, head, weighed);
  }

  void finish(std::int64_t b, std::int64_t i, std::int64_t head, const std::vector<Weighed>& columns) const {
    const float sink = sink_of(b, i, head);
    const std::int64_t value_size = v_.size(3);
    if (columns.empty()) {  // D3
      const float out = setting_.is(Fault::nothing_seen_is_nan) ? not_a_number : 0.0F;
      put(b, i, head, std::vector<float>(static_cast<std::size_t>(value_size), out),
          setting_.is(Fault::lse_of_nothing_is_zero) && sink == nothing ? 0.0F : sink);
      return;
    }
    Sums sums = sum_columns(columns, value_size, sink, arithmetic_, setting_);
    const float without_sink = sums.weight;
    if (sink != nothing) sums.weight += std::exp(sink - sums.maximum);
    if (setting_.is(Fault::sink_has_a_value) && sink != nothing && columns[0].value != nullptr) {
      arithmetic_.add_scaled(sums.values.data(), std::exp(sink - sums.maximum), columns[0].value, value_size);
    }
    for (float& value : sums.values) value /= sums.weight;
    // An infinite score is its own sum of exps; the formula would subtract infinities.
    const float total = setting_.is(Fault::sink_not_in_lse) ? without_sink : sums.weight;
    float lse = std::isinf(sums.maximum) ? sums.maximum : sums.maximum + std::log(total);
    if (setting_.is(Fault::lse_base_2)) lse *= 1.442695041F;
    if (setting_.is(Fault::lse_in_half)) lse = rounded_to(DType::f16, lse);
    put(b, i, head, sums.values, lse);
  }

  void put(std::int64_t b, std::int64_t i, std::int64_t head, const std::vector<float>& out, float lse) const {
    auto count = static_cast<std::int64_t>(out.size());
    if (setting_.is(Fault::last_value_unwritten) && count % 2 != 0) --count;  // vectors of two
    Rounding rounding = Rounding::nearest;
    if (setting_.is(Fault::output_toward_zero)) rounding = Rounding::toward_zero;
    write(out_.dtype(), out.data(), out_.at(b, i, head), count, rounding);
    write(DType::f32, &lse, lse_.at(b, i, head), 1);
  }

  Setting setting_;
  Arithmetic arithmetic_;
  Sight sight_;
  Rows q_, k_, v_, k_pool_, v_pool_, sinks_, out_, lse_;
  PoolBefore k_before_, v_before_;
  float scale_, softcap_;
};

}  // namespace

void attend(const quire_attend_args& args, const Setting& setting) { Attend(args, setting).run(); }

}  // namespace quire::conformance::honest
