// Calls of the reference around the error model's cases, and the contracts of the ways that compute them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../src/error_model.h"
#include "error_model_cases.h"

namespace error_model_tests {

// What an implementation that computes this way declares. Its exp is libm's, within an ulp or so.
inline quire_contract contract_of(const Way& way) {
  const auto roundoff = [](int bits) { return std::ldexp(1.0, -bits); };
  return {sizeof(quire_contract),
          roundoff(way.operand_bits),
          roundoff(way.sum_bits),
          roundoff(way.store_bits),
          0x1p-23,
          way.from_logs ? 1 : 0,
          way.chunk,
          1};
}

struct RuleArgs {
  explicit RuleArgs(const RuleDraw& rule)
      : q(rule.dtype, {rule.tokens, 1, rule.keys}, rule.q),
        k(rule.dtype, {rule.tokens, 1, rule.keys}, rule.k),
        v(rule.dtype, {rule.tokens, 1, rule.values}, rule.v),
        g(quire::DType::f32, {rule.tokens, 1}, rule.g),
        beta(quire::DType::f32, {rule.tokens, 1}, rule.beta),
        state(rule.state_dtype, {1, 1, rule.values, rule.keys}, rule.state),
        final(rule.state_dtype, {1, 1, rule.values, rule.keys}),
        output(rule.dtype, {rule.tokens, 1, rule.values}),
        lens(Buffer::integers({2}, {0, rule.tokens})) {
    args.struct_size = sizeof args;
    args.q = &q;
    args.k = &k;
    args.v = &v;
    args.g = &g;
    args.beta = &beta;
    args.cu_seqlens = &lens;
    args.initial_state = &state;
    args.output_state = &final;
    args.output = &output;
    args.scale = static_cast<double>(rule.scale);
    args.use_qk_l2norm = rule.normalise ? 1 : 0;
  }
  Buffer q, k, v, g, beta, state, final, output, lens;
  quire_gdn_prefill_args args{};
};

struct AttendArgs {
  explicit AttendArgs(const AttendDraw& attend)
      : q(attend.dtype, {1, 1, 1, attend.size}, attend.q),
        k(attend.dtype, {1, 1, 1, attend.size}),
        v(attend.dtype, {1, 1, 1, attend.values}),
        k_pool(attend.dtype, {attend.columns, 1, attend.size}, attend.k),
        v_pool(attend.dtype, {attend.columns, 1, attend.values}, attend.v),
        sinks(quire::DType::f32, {1}, std::vector<float>{attend.sink}),
        out(attend.dtype, {1, 1, 1, attend.values}),
        lse(quire::DType::f32, {1, 1, 1}),
        pos(Buffer::integers({1, 1}, {attend.columns - 1})) {
    std::vector<std::int64_t> slots;
    for (std::int64_t j = 0; j < attend.columns; ++j) {
      slots.push_back(std::find(attend.holes.begin(), attend.holes.end(), j) == attend.holes.end() ? j : -1);
    }
    table = Buffer::integers({1, attend.columns}, slots);
    index.struct_size = sizeof index;
    index.kind = QUIRE_INDEX_TABLED;
    index.pos = &pos;
    index.table = &table;
    index.reads = 1;
    args.struct_size = sizeof args;
    args.index = &index;
    args.q = &q;
    args.k = &k;
    args.v = &v;
    args.k_pool = &k_pool;
    args.v_pool = &v_pool;
    args.sinks = attend.has_sink ? &sinks : nullptr;
    args.out = &out;
    args.lse = &lse;
    args.scale = static_cast<double>(attend.scale);
    args.softcap = static_cast<double>(attend.softcap);
  }
  Buffer q, k, v, k_pool, v_pool, sinks, out, lse, pos, table;
  quire_index index{};
  quire_attend_args args{};
};

/// Typical: normals, keys of length 1, decays below 1, float32 throughout.
RuleDraw typical_rule(std::uint64_t number);
AttendDraw typical_attend(std::uint64_t number);

}  // namespace error_model_tests
