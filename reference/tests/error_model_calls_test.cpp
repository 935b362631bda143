// The error model's calls: which elements and rows they speak of, what is accepted, and values out of range.
#include "error_model_calls.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "../src/ops.h"

namespace {

using namespace error_model_tests;
using quire::DType;
using quire::reference::AttendBounds;
using quire::reference::Bounds;
using quire::reference::GdnBounds;

// ---- what is accepted ----

quire_contract float32_contract() { return contract_of(Way{}); }

TEST_CASE("error model: accepts and allowed") {
  using quire::reference::accepts;
  using quire::reference::allowed;
  const quire_contract contract = float32_contract();
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double c = quire::reference::factor(contract);
  CHECK(allowed(1, 0x1p-20, QUIRE_F64, contract) == doctest::Approx(c * 0x1p-20));
  CHECK(allowed(1 + 0x1p-9, 0, QUIRE_BF16, contract) == 0x1p-9);
  CHECK(accepts(1, 1 + 0x1p-9, 0, QUIRE_BF16, contract));
  CHECK_FALSE(accepts(1 + 0x1p-7, 1 + 0x1p-9, 0, QUIRE_BF16, contract));
  CHECK(accepts(1 + 0x1p-7, 1 + 0x1p-8 - 1e-6, 1e-6, QUIRE_BF16, contract));
  // E5: fp8 saturates.
  CHECK(accepts(448, 1000, 1e-3, QUIRE_F8_E4M3FN, contract));
  CHECK(accepts(-448, -infinity, 0, QUIRE_F8_E4M3FN, contract));
  CHECK_FALSE(accepts(416, 1000, 1e-3, QUIRE_F8_E4M3FN, contract));
  CHECK(allowed(1000, 0, QUIRE_F8_E4M3FN, contract) == 552);
  // The wider types overflow.
  CHECK(accepts(infinity, 65519.99, 1e-2, QUIRE_F16, contract));
  CHECK(accepts(65504, 65519.99, 1e-2, QUIRE_F16, contract));
  CHECK_FALSE(accepts(65472, 65519.99, 1e-2, QUIRE_F16, contract));
  CHECK(accepts(infinity, infinity, 0, QUIRE_F32, contract));
  CHECK_FALSE(accepts(3e38, infinity, 0, QUIRE_F32, contract));
  CHECK(accepts(nan, nan, 0, QUIRE_F32, contract));
  CHECK_FALSE(accepts(nan, 1, 1e-6, QUIRE_F32, contract));
  CHECK_FALSE(accepts(1, nan, 0, QUIRE_F32, contract));
  CHECK(accepts(nan, 0, quire::reference::no_bound, QUIRE_F32, contract));
  // How much of what is allowed a value takes, the final rounding apart.
  using quire::reference::share;
  CHECK(share(1, 1 + 0x1p-9, 1, QUIRE_BF16, contract) == 0);
  const double reach = quire::reference::factor(contract);
  CHECK(share(1.5, 1, 1 / reach, QUIRE_F64, contract) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(share(1 + 0x1p-6, 1, 0x1p-5 / reach, QUIRE_BF16, contract) == doctest::Approx(0.375).epsilon(0.01));  // from 1 + 1.5 * 2^-7 on
  CHECK(share(3, 1, 1 / reach, QUIRE_F64, contract) == infinity);
  CHECK(share(1, 1, 0, QUIRE_F32, contract) == 0);
}

// ---- which elements and rows; the centers are the reference's own results ----

void check_centers(Buffer& result, std::int64_t first, const Bounds& bounds, DType dtype) {
  const std::vector<double> values = result.values();
  bool same = true;
  for (std::size_t i = 0; i < bounds.center.size(); ++i) {
    Buffer held(dtype, {1}, std::vector<double>{bounds.center[i]});
    same &= held.values()[0] == values[static_cast<std::size_t>(first) + i] && bounds.deviation[i] >= 0;
  }
  CHECK(same);
}

TEST_CASE("error model: rows of a prefill call") {
  // Two sequences of 70 and 2 tokens and an empty one; a checkpoint of the first at 64, a final state of the second dropped.
  RuleDraw rule = typical_rule(3);
  const std::int64_t tokens = 72, heads = 2;
  const auto part = [](std::vector<float> x, std::int64_t n) {
    x.resize(static_cast<std::size_t>(n));
    return x;
  };
  Buffer q(DType::bf16, {tokens, 1, 32}, part(rule.q, tokens * 32)), k(DType::bf16, {tokens, 1, 32}, part(rule.k, tokens * 32));
  Buffer v(DType::bf16, {tokens, heads, 4}, part(rule.v, tokens * heads * 4)), output(DType::bf16, {tokens, heads, 4});
  Buffer pool(DType::f32, {6, heads, 4, 32}, std::vector<float>(6 * 2 * 4 * 32, 0.25F));
  Buffer lens = Buffer::integers({4}, {0, 70, 72, 72}), reads = Buffer::integers({3}, {-1, 2, 0}),
         writes = Buffer::integers({3}, {4, 9, 5});
  Buffer starts = Buffer::integers({3}, {1, 0, 0}), prefix = Buffer::integers({3}, {0, 0, 64});
  quire_gdn_prefill_args args{};
  args.q = &q, args.k = &k, args.v = &v, args.output = &output;
  args.cu_seqlens = &lens, args.state_indices = &reads, args.output_state_indices = &writes;
  args.initial_state = args.output_state = args.state_checkpoints = &pool;
  args.checkpoint_cu_starts = &starts, args.prefix_lens = &prefix, args.checkpoint_every_n_tokens = 64;
  args.scale = 0.5, args.use_qk_l2norm = 1;
  const GdnBounds bounds = quire::reference::gdn_prefill_bounds(args, float32_contract());
  quire::reference::gdn_prefill(args);
  check_centers(output, 0, bounds.output, DType::bf16);
  REQUIRE(bounds.output_state.size() == 1);
  check_centers(pool, 4 * heads * 4 * 32, bounds.output_state.at(4), DType::f32);
  REQUIRE(bounds.state_checkpoints.size() == 1);
  check_centers(pool, 1 * heads * 4 * 32, bounds.state_checkpoints.at(1), DType::f32);
}

TEST_CASE("error model: decode with raw gates, and its honest error") {
  Random random(11);
  const std::int64_t batch = 3, heads = 2, size = 8;
  const auto drawn = [&](std::int64_t n, double factor) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(factor * random.normal()));
    return x;
  };
  double largest = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    Buffer q(DType::f32, {batch, 1, heads, size}, drawn(batch * heads * size, 1)),
        k(DType::f32, {batch, 1, heads, size}, drawn(batch * heads * size, 1));
    Buffer v(DType::f32, {batch, 1, heads, size}, drawn(batch * heads * size, 1)), output(DType::f32, {batch, 1, heads, size});
    Buffer A_log(DType::f32, {heads}, drawn(heads, 1)), a(DType::f32, {batch, 1, heads}, drawn(batch * heads, 3));
    Buffer dt_bias(DType::f32, {heads}, drawn(heads, 1)), b(DType::f32, {batch, 1, heads}, drawn(batch * heads, 4));
    Buffer pool(DType::f32, {4, heads, size, size}, drawn(4 * heads * size * size, 1));
    Buffer reads = Buffer::integers({batch}, {2, -1, 0}), writes = Buffer::integers({batch}, {3, 1, 0});
    quire_gdn_decode_args args{};
    args.q = &q, args.k = &k, args.v = &v, args.output = &output;
    args.A_log = &A_log, args.a = &a, args.dt_bias = &dt_bias, args.b = &b;
    args.state_pool = &pool, args.state_indices = &reads, args.output_state_indices = &writes;
    args.scale = 1, args.use_qk_l2norm = 1;
    const GdnBounds bounds = quire::reference::gdn_decode_bounds(args, float32_contract());
    const std::vector<double> before = pool.values(), A = A_log.values(), as = a.values(), bias = dt_bias.values(), bs = b.values();
    const std::vector<double> qs = q.values(), ks = k.values(), vs = v.values();
    quire::reference::gdn_decode(args);
    check_centers(output, 0, bounds.output, DType::f32);
    REQUIRE(bounds.output_state.size() == 2);
    check_centers(pool, 3 * heads * size * size, bounds.output_state.at(3), DType::f32);
    check_centers(pool, 0, bounds.output_state.at(0), DType::f32);
    CHECK(bounds.output.deviation[static_cast<std::size_t>(heads * size)] == 0);  // the padded sequence
    for (const std::int64_t lane : {0, 2}) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto cut = [](const std::vector<double>& x, std::int64_t begin, std::int64_t n) {
          return std::vector<float>(x.begin() + begin, x.begin() + begin + n);
        };
        const std::int64_t gate = lane * heads + head, row = lane == 0 ? 2 : 0;
        const float y = static_cast<float>(as[static_cast<std::size_t>(gate)]) + static_cast<float>(bias[static_cast<std::size_t>(head)]);
        const float softplus = y > 20 ? y : std::log1p(std::exp(y));
        RuleCase rule;
        rule.keys = rule.values = size;
        rule.q = cut(qs, gate * size, size), rule.k = cut(ks, gate * size, size), rule.v = cut(vs, gate * size, size);
        rule.g = {std::exp(-std::exp(static_cast<float>(A[static_cast<std::size_t>(head)])) * softplus)};
        rule.beta = {1 / (1 + std::exp(-static_cast<float>(bs[static_cast<std::size_t>(gate)])))};
        rule.state = cut(before, (row * heads + head) * size * size, size * size);
        rule.normalise = true;
        const RuleResult result = compute_rule(rule, Way{});
        const Bounds& state = bounds.output_state.at(lane == 0 ? 3 : 0);
        const auto see = [&](float value, double center, double deviation) {
          CHECK(quire::reference::accepts(static_cast<double>(value), center, deviation, QUIRE_F32, float32_contract()));
          if (deviation > 0) largest = std::max(largest, std::fabs(static_cast<double>(value) - center) / deviation);
        };
        for (std::int64_t i = 0; i < size * size; ++i) {
          const auto n = static_cast<std::size_t>(head * size * size + i);
          see(result.state[static_cast<std::size_t>(i)], state.center[n], state.deviation[n]);
        }
        for (std::int64_t i = 0; i < size; ++i) {
          const auto n = static_cast<std::size_t>(gate * size + i);
          see(result.output[static_cast<std::size_t>(i)], bounds.output.center[n], bounds.output.deviation[n]);
        }
      }
    }
  }
  if (std::getenv("QUIRE_TEST_CASES") != nullptr) std::printf("decode with raw gates: largest error %.3f deviations\n", largest);
}

TEST_CASE("error model: a draft's tree goes on from its parents") {
  // Lane 0: tokens 0 <- 1 <- 3 and 0 <- 2; lane 1 is padded. The chain's deviations are those of a prefill.
  RuleDraw rule = typical_rule(5);
  const std::int64_t seq = 4, size = 16;
  const auto rows_of = [&](const std::vector<float>& x, const std::vector<std::int64_t>& tokens) {
    std::vector<float> rows;
    for (const std::int64_t t : tokens) rows.insert(rows.end(), x.begin() + t * size, x.begin() + (t + 1) * size);
    return rows;
  };
  const std::vector<std::int64_t> all{0, 1, 2, 3, 0, 1, 2, 3}, chain{0, 1, 3};
  const std::vector<float> initial(rule.state.begin(), rule.state.begin() + size * size);
  Buffer q(DType::f32, {2, seq, 1, size}, rows_of(rule.q, all)), k(DType::f32, {2, seq, 1, size}, rows_of(rule.k, all));
  Buffer v(DType::f32, {2, seq, 1, size}, rows_of(rule.v, all)), output(DType::f32, {2, seq, 1, size});
  std::vector<float> rows(6 * size * size);
  std::copy(initial.begin(), initial.end(), rows.begin());
  Buffer pool(DType::f32, {6, 1, size, size}, rows);
  Buffer pos = Buffer::integers({2, seq}, {8, 9, 9, 10, 8, 9, 9, 10}), table(DType::i64, {2, 16}), draft_slots(DType::i64, {2, seq});
  Buffer sees(DType::boolean, {2, seq, seq});
  for (std::int64_t b = 0; b < 2; ++b) {
    for (const auto& [i, j] : {std::pair{0, 0}, {1, 0}, {1, 1}, {2, 0}, {2, 2}, {3, 0}, {3, 1}, {3, 3}})
      sees.data()[(b * seq + i) * seq + j] = std::byte{1};
  }
  Buffer reads = Buffer::integers({2}, {0, -1}), slots = Buffer::integers({2, seq}, {1, 0, 3, 4, 5, 5, 5, 5});
  quire_index index{};
  index.struct_size = sizeof index;
  index.kind = QUIRE_INDEX_TABLED;
  index.pos = &pos, index.table = &table, index.slots = &draft_slots, index.sees = &sees;
  index.reads = 1;
  quire_gdn_verify_args args{};
  args.index = &index, args.q = &q, args.k = &k, args.v = &v, args.output = &output;
  args.state_pool = &pool, args.state_indices = &reads, args.state_slots = &slots;
  args.scale = 1;
  const GdnBounds bounds = quire::reference::gdn_verify_bounds(args, float32_contract());
  quire::reference::gdn_verify(args);
  check_centers(output, 0, bounds.output, DType::f32);
  REQUIRE(bounds.output_state.size() == 4);
  for (const std::int64_t row : {0, 1, 3, 4}) check_centers(pool, row * size * size, bounds.output_state.at(row), DType::f32);

  Buffer chain_q(DType::f32, {3, 1, size}, rows_of(rule.q, chain)), chain_k(DType::f32, {3, 1, size}, rows_of(rule.k, chain));
  Buffer chain_v(DType::f32, {3, 1, size}, rows_of(rule.v, chain)), chain_output(DType::f32, {3, 1, size});
  Buffer first(DType::f32, {1, 1, size, size}, initial), last(DType::f32, {1, 1, size, size}), lens = Buffer::integers({2}, {0, 3});
  quire_gdn_prefill_args prefill{};
  prefill.q = &chain_q, prefill.k = &chain_k, prefill.v = &chain_v, prefill.output = &chain_output;
  prefill.cu_seqlens = &lens, prefill.initial_state = &first, prefill.output_state = &last;
  prefill.scale = 1;
  const GdnBounds same = quire::reference::gdn_prefill_bounds(prefill, float32_contract());
  for (std::size_t i = 0; i < same.output_state.at(0).center.size(); ++i) {
    CHECK(same.output_state.at(0).center[i] == bounds.output_state.at(4).center[i]);
    CHECK(same.output_state.at(0).deviation[i] == bounds.output_state.at(4).deviation[i]);
  }
}

TEST_CASE("error model: attention past its columns, without columns, and its centers") {
  AttendDraw attend = typical_attend(9);
  AttendArgs call(attend);
  const AttendBounds bounds = quire::reference::attend_bounds(call.args, float32_contract());
  quire::reference::attend(call.args);
  // The call stored its own token, whose key and value are zeros here, after the bounds were taken.
  const AttendBounds after = quire::reference::attend_bounds(call.args, float32_contract());
  check_centers(call.out, 0, after.out, DType::f32);
  check_centers(call.lse, 0, after.lse, DType::f32);

  Buffer past = Buffer::integers({1, 1}, {attend.columns});
  call.index.pos = &past;
  const AttendBounds unspecified = quire::reference::attend_bounds(call.args, float32_contract());
  CHECK(unspecified.out.deviation[0] == quire::reference::no_bound);  // B7
  CHECK(unspecified.lse.deviation[0] == quire::reference::no_bound);

  Buffer padding = Buffer::integers({1, 1}, {-1});
  call.index.pos = &padding;
  const AttendBounds none = quire::reference::attend_bounds(call.args, float32_contract());
  CHECK(none.out.center[0] == 0);
  CHECK(none.out.deviation[0] == 0);
  CHECK(none.lse.center[0] == -std::numeric_limits<double>::infinity());  // D3
  CHECK(none.lse.deviation[0] == 0);
  CHECK(bounds.out.deviation[0] > 0);
}

TEST_CASE("error model: infinities, NaN and overflow stay where they are") {
  RuleDraw rule = typical_rule(7);
  rule.v[1] = std::numeric_limits<float>::infinity();
  rule.v[2] = std::numeric_limits<float>::quiet_NaN();
  RuleArgs call(rule);
  const GdnBounds bounds = quire::reference::gdn_prefill_bounds(call.args, float32_contract());
  RuleArgs plain(typical_rule(7));
  const GdnBounds usual = quire::reference::gdn_prefill_bounds(plain.args, float32_contract());
  for (std::size_t n = 0; n < bounds.output.center.size(); ++n) {
    const bool hit = n % 16 == 1 || n % 16 == 2;
    CHECK(std::isfinite(bounds.output.center[n]) == !hit);
    if (hit) CHECK(bounds.output.deviation[n] == 0);
    if (!hit) CHECK(bounds.output.deviation[n] == doctest::Approx(usual.output.deviation[n]).epsilon(0.5));
  }
  // A state near float32's end may overflow on the way.
  for (float& x : rule.state) x = 3e38F;
  rule.v = typical_rule(7).v;
  RuleArgs huge(rule);
  const GdnBounds wide = quire::reference::gdn_prefill_bounds(huge.args, float32_contract());
  CHECK(std::isinf(wide.output.deviation[0]));
}

}  // namespace
