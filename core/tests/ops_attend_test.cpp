// attend against a few plain loops, and one attention in many layouts, bit for bit (laws D, A, B).
#include <quire/ops.h>

#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace quire;
using namespace quire::test;

namespace {

constexpr std::int64_t tokens = 7, query_heads = 4, heads = 2, size = 5, value_size = 3;

struct Inputs {
  Tensor q, k, v;
};
// One sequence of seven tokens.
Inputs inputs(DType dtype = DType::f32, std::uint64_t seed = 1) {
  return {filled(dtype, {1, tokens, query_heads, size}, seed, -2, 2), filled(dtype, {1, tokens, heads, size}, seed + 1, -2, 2),
          filled(dtype, {1, tokens, heads, value_size}, seed + 2)};
}
Tensor pool_of(std::int64_t slots, std::int64_t width, DType dtype = DType::f32) {
  Tensor pool = Tensor::empty(dtype, {slots, heads, width});
  for_elements(pool, [&](std::int64_t, std::byte* element) { write_number(dtype, element, std::nan("")); });  // D2: unseen, it adds nothing
  return pool;
}
Attended run(const Index& index, const Inputs& in, std::int64_t slots, const AttendOptions& options = {}) {
  return attend(index, in.q, in.k, in.v, pool_of(slots, size, in.k.dtype()), pool_of(slots, value_size, in.v.dtype()), options);
}
Attended plain() { return run(rows(tokens, {tokens}), inputs(), tokens); }

// D1, D4 in float64: token i of the sequence weighs the positions that `sees` names.
void check_by_hand(const Inputs& in, const Attended& got, const AttendOptions& options, double tolerance,
                   const std::function<bool(std::int64_t, std::int64_t)>& sees) {
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(size)));
  for (std::int64_t i = 0; i < tokens; ++i) {
    for (std::int64_t h = 0; h < query_heads; ++h) {
      const std::int64_t kv = h / (query_heads / heads);
      double total = options.sinks.defined() ? std::exp(options.sinks.number(Shape{h})) : 0;
      std::vector<double> out(static_cast<std::size_t>(value_size));
      for (std::int64_t j = 0; j < tokens; ++j) {
        if (!sees(i, j)) continue;
        double score = 0;
        for (std::int64_t d = 0; d < size; ++d) score += in.q.number(Shape{0, i, h, d}) * in.k.number(Shape{0, j, kv, d});
        score *= scale;
        if (options.softcap) score = *options.softcap * std::tanh(score / *options.softcap);
        total += std::exp(score);
        for (std::int64_t d = 0; d < value_size; ++d) out[static_cast<std::size_t>(d)] += std::exp(score) * in.v.number(Shape{0, j, kv, d});
      }
      CHECK(got.lse.number(Shape{0, i, h}) == doctest::Approx(std::log(total)).epsilon(1e-6));
      for (std::int64_t d = 0; d < value_size; ++d) {
        CHECK(got.out.number(Shape{0, i, h, d}) == doctest::Approx(out[static_cast<std::size_t>(d)] / total).epsilon(tolerance));
      }
    }
  }
}
bool causal(std::int64_t i, std::int64_t j) { return j <= i; }

// Rows of a result that belong to one lane.
std::string lane(const Tensor& tensor, std::int64_t b) { return bytes(tensor.at(b)); }
// Tokens [begin, end) of one lane.
Tensor part(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  Tensor cut = tensor.at(0).slice(begin, count).clone();
  Shape shape = cut.shape();
  shape.insert(shape.begin(), 1);
  return cut.reshaped(shape);
}
Inputs part(const Inputs& in, std::int64_t begin, std::int64_t count) {
  return {part(in.q, begin, count), part(in.k, begin, count), part(in.v, begin, count)};
}
// The tokens as so many lanes of one token.
Inputs as_lanes(const Inputs& in) {
  const auto turn = [](const Tensor& tensor) { return tensor.reshaped({tensor.size(1), 1, tensor.size(2), tensor.size(3)}); };
  return {turn(in.q), turn(in.k), turn(in.v)};
}
bool same_tokens(const Attended& got, const Attended& expected) {
  return bytes(got.out) == bytes(expected.out) && bytes(got.lse) == bytes(expected.lse);
}

}  // namespace

TEST_CASE("D1, D4: softmax by hand in every dtype, with scale, softcap and sinks") {
  for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-12}, {DType::f32, 2e-6}, {DType::f16, 2e-3}, {DType::bf16, 2e-2}}) {
    CAPTURE(std::string(name(dtype)));
    const Inputs in = inputs(dtype);
    AttendOptions options;
    check_by_hand(in, run(rows(tokens, {tokens}), in, tokens), options, tolerance, causal);
    options.scale = -0.7;
    options.softcap = 1.5;
    options.sinks = filled(DType::f32, {query_heads}, 9, -2, 2);
    check_by_hand(in, run(rows(tokens, {tokens}), in, tokens, options), options, tolerance, causal);
    CHECK(run(rows(tokens, {tokens}), in, tokens).out.dtype() == dtype);
  }
}

TEST_CASE("D1: a window by hand") {
  const Inputs in = inputs();
  check_by_hand(in, run(rows(tokens, {tokens}).window(3), in, tokens), {}, 2e-6,
                [](std::int64_t i, std::int64_t j) { return j <= i && j > i - 3; });
}

TEST_CASE("D2: a hole has a zero score and a zero value") {
  // The token at position 2 sees holes at 0 and 1 and its own column, of score ln 2: weights 1, 1, 2.
  const Index index = Index::make(i64({2}, {1, 1}), i64({-1, 9, 0}, {1, 3}));
  const float ln2 = std::log(2.0f);
  const Attended got = attend(index, f32({ln2}, {1, 1, 1, 1}), f32({1}, {1, 1, 1, 1}), f32({6}, {1, 1, 1, 1}), f32({0}, {1, 1, 1}), f32({0}, {1, 1, 1}), {1.0, {}, {}});
  CHECK(got.out.number(Shape{0, 0, 0, 0}) == doctest::Approx(3.0));
  CHECK(got.lse.number(Shape{0, 0, 0}) == doctest::Approx(std::log(4.0)));
}

TEST_CASE("D3: a token that sees nothing gives zeros; lse is -inf, or the sink for a real one") {
  // Token 0 is padding; token 1 at position 2 chooses a column that it does not see.
  const Index index = Index::make(i64({-1, 2}, {1, 2}), i64({0, 1, 2}, {1, 3})).select(i64({0, 7}, {1, 2, 1}));
  const Tensor four = f32({1, 2}, {1, 2, 1, 1});
  const Tensor three = f32({1, 2, 3}, {3, 1, 1});
  const Attended bare = attend(index, four, four, four, three, three);
  CHECK(numbers(bare.out) == Numbers{0, 0});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(numbers(bare.lse) == Numbers{-infinity, -infinity});
  const Attended sunk = attend(index, four, four, four, three, three, {{}, {}, f32({0.5}, {1})});
  CHECK(numbers(sunk.out) == Numbers{0, 0});
  CHECK(numbers(sunk.lse) == Numbers{-infinity, 0.5});
}

TEST_CASE("one sequence, bit for bit: whole, padded, shuffled slots, lanes, chunks") {
  const Inputs in = inputs();
  const Attended expected = plain();
  check_by_hand(in, expected, {}, 2e-6, causal);
  CHECK(same_tokens(attend(Index::whole(1, tokens), in.q, in.k, in.v, {}, {}), expected));
  CHECK(same_tokens(attend(packed(tokens, {{tokens}}), in.q, in.k, in.v, {}, {}), expected));
  const Index shuffled = Index::make(i64({0, 1, 2, 3, 4, 5, 6}, {1, 7}), i64({8, 3, 11, 0, 7, 1, 5, -1, 2}, {1, 9}));
  CHECK(same_tokens(run(shuffled, in, 12), expected));
  // One token per lane, all of one row.
  const Index lanes = Index::make(i64({0, 1, 2, 3, 4, 5, 6}, {7, 1}), i64({8, 3, 11, 0, 7, 1, 5}, {1, 7}), i64({0, 0, 0, 0, 0, 0, 0}, {7}));
  CHECK(same_tokens(run(lanes, as_lanes(in), 12), expected));
  for (std::int64_t cut = 1; cut < tokens; ++cut) {
    CAPTURE(cut);
    const Index first = rows(tokens, {cut});
    const Inputs head = part(in, 0, cut), tail = part(in, cut, tokens - cut);
    const Attended one = run(first, head, tokens);
    Tensor pos = Tensor::empty(DType::i64, {1, tokens - cut});
    for (std::int64_t i = 0; i < tokens - cut; ++i) pos.data<std::int64_t>()[i] = cut + i;
    const Attended two = attend(Index::make(pos, first.table()), tail.q, tail.k, tail.v, one.k_pool, one.v_pool);
    CHECK(bytes(one.out) + bytes(two.out) == bytes(expected.out));
    CHECK(bytes(one.lse) + bytes(two.lse) == bytes(expected.lse));
    CHECK(same_bits(two.k_pool, expected.k_pool));
  }
  // Token by token with advance.
  Index index = rows(tokens, {1});
  Attended step = run(index, part(in, 0, 1), tokens);
  std::string out = bytes(step.out);
  for (std::int64_t i = 1; i < tokens; ++i) {
    index = index.advance();
    const Inputs one = part(in, i, 1);
    step = attend(index, one.q, one.k, one.v, std::move(step.k_pool), std::move(step.v_pool));
    out += bytes(step.out);
  }
  CHECK(out == bytes(expected.out));
}

TEST_CASE("packed sequences give the bits they give alone") {
  const Inputs in = inputs();
  const Attended both = attend(packed(tokens, {{4, 3}}), in.q, in.k, in.v, {}, {});
  const Inputs first = part(in, 0, 4), second = part(in, 4, 3);
  const Attended one = attend(Index::whole(1, 4), first.q, first.k, first.v, {}, {});
  const Attended two = attend(Index::whole(1, 3), second.q, second.k, second.v, {}, {});
  CHECK(bytes(both.out) == bytes(one.out) + bytes(two.out));
  CHECK(bytes(both.lse) == bytes(one.lse) + bytes(two.lse));
}

TEST_CASE("lanes of a batch give the bits they give alone") {
  const Inputs a = inputs(DType::f32, 1), b = inputs(DType::f32, 20);
  const auto stack = [](const Tensor& one, const Tensor& other) {
    Tensor both = Tensor::empty(one.dtype(), {2, one.size(1), one.size(2), one.size(3)});
    const std::string all = bytes(one) + bytes(other);
    std::memcpy(both.raw(), all.data(), all.size());
    return both;
  };
  const Inputs both{stack(a.q, b.q), stack(a.k, b.k), stack(a.v, b.v)};
  const Attended got = run(rows(tokens, {tokens, tokens}), both, 2 * tokens);
  CHECK(lane(got.out, 0) == bytes(run(rows(tokens, {tokens}), a, tokens).out));
  CHECK(lane(got.out, 1) == bytes(run(rows(tokens, {tokens}), b, tokens).out));
  CHECK(lane(got.lse, 1) == bytes(run(rows(tokens, {tokens}), b, tokens).lse));
}

TEST_CASE("a shared prefix and a fork give the bits of the sequence alone") {
  const Inputs in = inputs();
  const Attended expected = plain();
  // Row 0 stores the prefix of four tokens; rows 1 and 2 name its slots and go on in their own.
  const Inputs prefix = part(in, 0, 4), tail = part(in, 4, 3);
  const Attended stored = run(Index::make(i64({0, 1, 2, 3}, {1, 4}), i64({9, 2, 5, 0}, {1, 4})), prefix, 16);
  const auto twice = [](const Tensor& tensor) {
    Tensor both = Tensor::empty(tensor.dtype(), {2, tensor.size(1), tensor.size(2), tensor.size(3)});
    const std::string all = bytes(tensor) + bytes(tensor);
    std::memcpy(both.raw(), all.data(), all.size());
    return both;
  };
  const Index forked = Index::make(i64({4, 5, 6, 4, 5, 6}, {2, 3}), i64({9, 2, 5, 0, 1, 3, 4, 9, 2, 5, 0, 15, 14, 13}, {2, 7}));
  const Attended got = attend(forked, twice(tail.q), twice(tail.k), twice(tail.v), stored.k_pool, stored.v_pool);
  const std::string expected_tail = bytes(part(expected.out, 4, 3));
  CHECK(lane(got.out, 0) == expected_tail);
  CHECK(lane(got.out, 1) == expected_tail);
  for (const std::int64_t slot : {9, 2, 5, 0}) CHECK(same_bits(got.k_pool.at(slot), stored.k_pool.at(slot)));
}

TEST_CASE("a draft of one chain gives the bits of the tokens fed in one call, and naming its slots keeps it") {
  const Inputs in = inputs();
  const Attended expected = plain();
  const Inputs prefix = part(in, 0, 3), tail = part(in, 3, 4);
  const Attended stored = run(Index::make(i64({0, 1, 2}, {1, 3}), i64({4, 1, 7}, {1, 3})), prefix, 16);
  const Tensor sees = bools({1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1}, {1, 4, 4});
  const Index draft = Index::make(i64({3, 4, 5, 6}, {1, 4}), i64({4, 1, 7, -1, -1, -1, -1}, {1, 7})).draft(i64({10, 12, 11, 15}, {1, 4}), sees);
  const Attended verified = attend(draft, tail.q, tail.k, tail.v, stored.k_pool, stored.v_pool);
  CHECK(bytes(verified.out) == bytes(part(expected.out, 3, 4)));
  CHECK(bytes(verified.lse) == bytes(part(expected.lse, 3, 4)));
  // Keep two tokens, then feed the last two as a chunk.
  const Index kept = Index::make(i64({5, 6}, {1, 2}), i64({4, 1, 7, 10, 12, 2, 3}, {1, 7}));
  const Inputs last = part(in, 5, 2);
  CHECK(bytes(attend(kept, last.q, last.k, last.v, verified.k_pool, verified.v_pool).out) == bytes(part(expected.out, 5, 2)));
}

TEST_CASE("each path of a drafted tree gives the bits of that path alone") {
  // The sequence's tokens 0 .. 6; the draft guesses 3, 4, 5 and a second child of 3: token 6's inputs at position 4.
  const Inputs in = inputs();
  const Attended stored = run(Index::make(i64({0, 1, 2}, {1, 3}), i64({4, 1, 7}, {1, 3})), part(in, 0, 3), 16);
  const Index draft = Index::make(i64({3, 4, 5, 4}, {1, 4}), i64({4, 1, 7, -1, -1, -1}, {1, 6}))
                          .draft(i64({10, 12, 11, 15}, {1, 4}), bools({1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1}, {1, 4, 4}));
  const Inputs tail = part(in, 3, 4);
  const Attended got = attend(draft, tail.q, tail.k, tail.v, stored.k_pool, stored.v_pool);
  const Attended expected = plain();
  CHECK(bytes(part(got.out, 0, 3)) == bytes(part(expected.out, 3, 3)));
  // The other path: 0, 1, 2, 3, 6.
  const Index path = Index::make(i64({3}, {1, 1}), i64({4, 1, 7, 9, 8}, {1, 5}));
  const Inputs three = part(in, 3, 1), six = part(in, 6, 1);
  const Attended up_to_three = attend(path, three.q, three.k, three.v, stored.k_pool, stored.v_pool);
  const Attended alone = attend(path.advance(), six.q, six.k, six.v, up_to_three.k_pool, up_to_three.v_pool);
  CHECK(bytes(part(got.out, 3, 1)) == bytes(alone.out));
}

TEST_CASE("a selection of the columns in order gives the bits of the window") {
  const Inputs in = inputs();
  Tensor columns = Tensor::empty(DType::i64, {1, tokens, 3});
  for (std::int64_t i = 0; i < tokens; ++i) {
    for (std::int64_t c = 0; c < 3; ++c) columns.data<std::int64_t>()[i * 3 + c] = i - 2 + c;
  }
  const Index index = rows(tokens, {tokens});
  CHECK(same_tokens(run(index.select(columns), in, tokens), run(index.window(3), in, tokens)));
}

TEST_CASE("blocks: attend reads one entry per closed block") {
  // Blocks of 2: the tokens at 1 and 3 close them. Token 0 sees none.
  const Index index = Index::make(i64({0, 1, 2, 3}, {1, 4}), i64({0, 1, 2, 3}, {1, 4}), {}, {{2, i64({1, 0}, {1, 2})}}).every(2);
  const Tensor q = Tensor::zeros(DType::f32, {1, 4, 1, 1});
  const Tensor k = f32({1, 2, 3, 4}, {1, 4, 1, 1});
  const Attended got = attend(index, q, k, f32({10, 20, 30, 40}, {1, 4, 1, 1}), f32({0, 0}, {2, 1, 1}), f32({0, 0}, {2, 1, 1}));
  CHECK(numbers(got.out) == Numbers{0, 20, 20, 30});  // zero scores weigh equally
  CHECK(numbers(got.k_pool) == Numbers{4, 2});
  CHECK(numbers(got.v_pool) == Numbers{40, 20});
}
