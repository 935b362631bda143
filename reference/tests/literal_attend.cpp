// The literal implementation of D: attend.
#include <cmath>

#include "literal_extend.h"

namespace quire_literal {

namespace {

struct Call {
  Index x;
  Tensor q, k, v;
  Shared k_pool, v_pool;
  double scale = 1;
  std::optional<double> softcap;
  std::optional<Tensor> sinks;

  Int query_heads() const { return q.shape[2]; }
  Int kv_heads() const { return k.shape[2]; }
};

// The row of a column's entry for one kv head, element d, from the pool or from the call's values.
double entry_element(const Tensor& values, const Shared& pool, const Source& from, Int b, Int head,
                     Int d) {
  if (from.where == From::slot) return real_at(*pool, {from.place, head, d});
  return real_at(values, {b, from.place, head, d});
}

// D4: a softcap c makes the score c * tanh(score / c).
double capped(const Call& call, double score) {
  return call.softcap ? *call.softcap * std::tanh(score / *call.softcap) : score;
}

// D1: scale * q.k. D2: a hole has score 0 whatever q is.
double score(const Call& call, Int b, Int i, Int h, Int head, const Source& from) {
  if (from.where == From::nothing) return 0;
  double dot = 0;
  for (Int d = 0; d < call.q.shape[3]; ++d) {
    dot += real_at(call.q, {b, i, h, d}) *
           entry_element(call.k, call.k_pool, from, b, head, d);
  }
  return capped(call, call.scale * dot);
}

// D1: softmax over the columns the token sees, times v; D3: none seen gives zeros and lse = -inf (a
// real token under a sink: lse = sink); D4: a sink adds exp(sink) to the denominator, and no value.
void attend_head(const Call& call, Int b, Int i, Int h, Tensor& out, Tensor& lse) {
  const Index& x = call.x;
  const Int head = h / (call.query_heads() / call.kv_heads());
  const Int slots = call.k_pool ? call.k_pool->shape[0] : 0;
  const Int width = call.v.shape[3];
  const auto lse_at = static_cast<std::size_t>((b * x.seq() + i) * call.query_heads() + h);
  const auto out_at = lse_at * static_cast<std::size_t>(width);
  lse.real[lse_at] = -HUGE_VAL;
  if (!real_token(x, b, i)) return;

  std::vector<Source> sources;
  std::vector<double> scores;
  for (Int c = 0; c < entries(x); ++c) {
    if (!sees_entry(x, b, i, c)) continue;
    sources.push_back(column_source(x, b, entry_column(x, b, i, c), slots));
    scores.push_back(score(call, b, i, h, head, sources.back()));
  }
  const bool sink = call.sinks.has_value();
  const double sink_logit = sink ? real_at(*call.sinks, {h}) : 0;
  if (scores.empty()) {
    if (sink) lse.real[lse_at] = round_to("f32", sink_logit);
    return;
  }
  // exp(s) / sum of exps is unchanged by a common shift; the greatest score keeps it in range.
  double shift = sink ? sink_logit : -HUGE_VAL;
  for (double s : scores) {
    if (s > shift) shift = s;
  }
  if (!std::isfinite(shift)) shift = 0;
  double sum = 0;
  for (double s : scores) sum += std::exp(s - shift);
  if (sink) sum += std::exp(sink_logit - shift);
  for (Int d = 0; d < width; ++d) {
    double weighed = 0;
    for (std::size_t n = 0; n < scores.size(); ++n) {
      if (sources[n].where == From::nothing) continue;  // a hole has a zero value
      weighed += std::exp(scores[n] - shift) *
                 entry_element(call.v, call.v_pool, sources[n], b, head, d);
    }
    out.real[out_at + static_cast<std::size_t>(d)] = round_to(call.q.dtype, weighed / sum);
  }
  lse.real[lse_at] = round_to("f32", shift + std::log(sum));
}

// D5: k or v that are not [B,S,Hkv,*], Hq not a multiple of Hkv, pools of another width or dtype.
void require_shapes(const Call& call) {
  const Int lanes = call.x.lanes();
  const Int seq = call.x.seq();
  const Tensor& q = call.q;
  if (!wide_float(q.dtype)) reject("q", "dtype not f16, bf16, f32 or f64");
  if (q.rank() != 4 || q.shape[0] != lanes || q.shape[1] != seq) reject("q", "not [B,S,Hq,D]");
  if (q.shape[2] == 0 || q.shape[3] == 0) reject("q", "no head or an empty head");
  const Tensor& k = call.k;
  if (!wide_float(k.dtype)) reject("k", "dtype not f16, bf16, f32 or f64");
  if (k.rank() != 4 || k.shape[0] != lanes || k.shape[1] != seq || k.shape[3] != q.shape[3]) {
    reject("k", "not [B,S,Hkv,D]");
  }
  if (k.shape[2] == 0) reject("k", "no head");
  const Tensor& v = call.v;
  if (!wide_float(v.dtype)) reject("v", "dtype not f16, bf16, f32 or f64");
  if (v.rank() != 4 || v.shape[0] != lanes || v.shape[1] != seq || v.shape[2] != k.shape[2]) {
    reject("v", "not [B,S,Hkv,Dv]");
  }
  if (q.shape[2] % k.shape[2] != 0) reject("q", "Hq is not a multiple of Hkv");
}

void require_pool(const Tensor& pool, const Tensor& values, const std::string& name) {
  if (pool.dtype != values.dtype) reject(name, "dtype differs from the values'");
  if (pool.rank() != 3 || pool.shape[1] != values.shape[2] || pool.shape[2] != values.shape[3]) {
    reject(name, "not [N,Hkv,width]");
  }
}

}  // namespace

void op_attend(Fields& fields, Result& result) {
  Call call;
  call.x = parse_index(fields);
  call.q = *fields.tensor("q");
  call.k = *fields.tensor("k");
  call.v = *fields.tensor("v");
  require_shapes(call);
  if (call.x.tabled() || fields.has("k_pool")) call.k_pool = fields.tensor("k_pool");
  if (call.x.tabled() || fields.has("v_pool")) call.v_pool = fields.tensor("v_pool");
  if (call.x.tabled()) {
    require_pool(*call.k_pool, call.k, "k_pool");
    require_pool(*call.v_pool, call.v, "v_pool");
    // A cache's pools have one slot axis: both are [N, ...].
    if (call.v_pool->shape[0] != call.k_pool->shape[0]) reject("v_pool", "another slot count");
  }
  const double width = static_cast<double>(call.q.shape[3]);
  call.scale = fields.has("scale") ? fields.number("scale") : 1 / std::sqrt(width);
  if (fields.has("softcap")) {
    call.softcap = fields.number("softcap");
    if (!(*call.softcap > 0)) reject("softcap", "not above 0");
  }
  if (fields.has("sinks")) {
    call.sinks = *fields.tensor("sinks");
    if (!wide_float(call.sinks->dtype)) reject("sinks", "not floating");
    if (call.sinks->shape != std::vector<Int>{call.query_heads()}) reject("sinks", "not [Hq]");
  }

  // D1: extend both pools.
  if (call.x.tabled()) {
    store(call.x, call.k, *call.k_pool);
    store(call.x, call.v, *call.v_pool);
  }
  const std::vector<Int> lead = {call.x.lanes(), call.x.seq(), call.query_heads()};
  Tensor out = zeros(call.q.dtype, {lead[0], lead[1], lead[2], call.v.shape[3]});
  Tensor lse = zeros("f32", lead);
  for (Int b = 0; b < lead[0]; ++b) {
    for (Int i = 0; i < lead[1]; ++i) {
      for (Int h = 0; h < lead[2]; ++h) attend_head(call, b, i, h, out, lse);
    }
  }
  result.add("out", out);
  result.add("lse", lse);
  if (call.k_pool) result.add("k_pool", call.k_pool);
  if (call.v_pool) result.add("v_pool", call.v_pool);
}

}  // namespace quire_literal
