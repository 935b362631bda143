// Calls of sizes and layouts that the suite's families do not draw.
#include "layouts.h"

#include "judge/judge_call.h"

#include <quire/ops.h>

#include <fmt/format.h>

#include <functional>

namespace quire::gpu::test {

namespace {

Tensor i64(const std::vector<std::int64_t>& values, Shape shape) { return Tensor::of(std::span(values), std::move(shape)); }
Tensor i32(const std::vector<std::int32_t>& values, Shape shape) { return Tensor::of(std::span(values), std::move(shape)); }
Tensor bools(const std::vector<std::uint8_t>& values, Shape shape) { return Tensor::of_bools(std::span(values), std::move(shape)); }

/// A number in [0, 1), the same everywhere: the splitmix64 of a counter.
double unit(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// Values in [-most, most) at every element.
void fill(const Tensor& tensor, std::uint64_t seed, double most) {
  for (std::int64_t n = 0; n < tensor.elements(); ++n) {
    std::int64_t rest = n, offset = 0;
    for (std::int64_t axis = tensor.rank(); axis-- > 0; rest /= tensor.size(axis)) offset += rest % tensor.size(axis) * tensor.stride(axis);
    write_number(tensor.dtype(), tensor.raw() + offset * size_of(tensor.dtype()),
                 most * (2 * unit(seed << 32 | static_cast<std::uint64_t>(n)) - 1));
  }
}

/// Memory with `gap` elements behind each axis from `first` on but the innermost.
Tensor gapped(DType dtype, Shape shape, std::uint64_t seed, std::int64_t gap, std::size_t first = 0, double most = 1) {
  Shape strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step = step * shape[axis] + (axis > first ? gap : 0);
  }
  const Tensor memory = Tensor::zeros(dtype, {step + 1});
  const auto owner = std::make_shared<Tensor>(memory);
  Tensor tensor = Tensor::share(owner, memory.raw(), dtype, std::move(shape), std::move(strides));
  fill(tensor, seed, most);
  return tensor;
}

/// 0, 1, ... in an order of its own.
std::vector<std::int64_t> shuffled(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = 0; n < count; ++n) numbers.push_back(n * 7 % count);  // a permutation where 7 does not divide count
  return numbers;
}

class Layouts {
 public:
  Layouts(const Backend& candidate, bool stop_at_failure) : judging_(candidate, backend("reference")), stop_at_failure_(stop_at_failure) {
    on_.backend = &judging_.backend();
  }

  LayoutReport run() {
    for (const std::int64_t gap : {0, 1, 3, 4}) {
      for (const DType dtype : {DType::f8_e5m2, DType::bf16, DType::f32, DType::f64}) extends(dtype, gap);
    }
    for (const std::int64_t size : {1, 31, 64, 96, 128, 160, 192, 255, 256, 257, 513}) {
      attends(size, size % 2 == 0 ? 3 : size, 0);
      attends(3, size, size % 3);
    }
    attends_far_back();
    for (const std::int64_t keys : {1, 3, 31, 32, 33, 63, 64, 65, 96, 128, 192, 255, 256}) rules(keys, keys % 2 == 0 ? 5 : 3, keys % 4);
    for (const std::int64_t values : {1, 32, 65, 300}) rules(4, values, values % 3);
    return report_;
  }

 private:
  void judge(const std::string& name, const std::function<void()>& call) {
    if (stop_at_failure_ && !report_.failures.empty()) return;
    call();
    for (const conformance::CallVerdict& verdict : judging_.take()) {
      ++report_.calls;
      if (verdict.status == conformance::CallVerdict::Status::failed)
        report_.failures.push_back(fmt::format("{}: {}", name, verdict.failure.message));
      if (verdict.status == conformance::CallVerdict::Status::unsupported)
        report_.failures.push_back(fmt::format("{}: unsupported: {}", name, verdict.reason));
    }
  }

  // Rows of three axes, each tensor with gaps of its own.
  void extends(DType dtype, std::int64_t gap) {
    const Shape row = {3, 2, 4};
    const auto of = [&](Shape lead, std::uint64_t seed, std::int64_t own_gap, std::size_t first) {
      lead.insert(lead.end(), row.begin(), row.end());
      return gapped(dtype, std::move(lead), seed, own_gap, first);
    };
    const Index index = Index::make(i64({2, 3, -1, 5}, {2, 2}), i64(shuffled(12), {2, 6}));
    judge(fmt::format("extend, gaps of {} in the pool", gap), [&] { extend(index, of({2, 2}, 1, 0, 0), of({15}, 2, gap, 0), on_); });
    judge(fmt::format("extend, gaps of {} in the values", gap), [&] { extend(index, of({2, 2}, 3, gap, 0), of({15}, 4, 0, 0), on_); });
    judge(fmt::format("extend, gaps of {} and 2 inside", gap), [&] {
      extend(index.window(2), of({2, 2}, 5, gap, 2), of({15}, 6, 2, 1), on_);
    });
  }

  // More columns than two tiles have, all from the pools; then choices of them.
  void attends(std::int64_t size, std::int64_t value_size, std::int64_t gap) {
    constexpr std::int64_t context = 300;
    const Index index = Index::make(i64({280, 299, -1, 130}, {2, 2}), i64(shuffled(2 * context), {2, context}));
    std::vector<std::int64_t> choices;
    for (std::int64_t n = 0; n < 4 * 150; ++n) choices.push_back(n * 37 % (context + 2) - 1);
    const Index choosing = index.select(i64(choices, {2, 2, 150}));
    const auto of = [&](Shape shape, std::uint64_t seed, std::size_t first) {
      return gapped(DType::f16, std::move(shape), seed, gap, first);
    };
    for (const Index& each : {index, choosing}) {
      judge(fmt::format("attend, heads of {} keys and {} values, gaps of {}", size, value_size, gap), [&] {
        attend(each, of({2, 2, 2, size}, 1, 0), of({2, 2, 1, size}, 2, 0), of({2, 2, 1, value_size}, 3, 0),
               Pool::in_place(of({2 * context, 1, size}, 4, 0)), Pool::in_place(of({2 * context, 1, value_size}, 5, 0)), {}, on_);
      });
    }
  }

  // Scores that grow from tile to tile, and ones that fall: sums of earlier tiles are rescaled, or weigh most.
  void attends_far_back() {
    constexpr std::int64_t context = 400;
    for (const double sign : {1.0, -1.0}) {
      Tensor keys = Tensor::zeros(DType::f32, {context, 1, 2});
      for (std::int64_t slot = 0; slot < context; ++slot)
        keys.data<float>()[2 * slot] = static_cast<float>(sign * static_cast<double>(slot) / 40);
      const Index index = Index::rows(context, std::vector<std::int64_t>{context});
      const Index last = Index::make(i64({context - 1}, {1, 1}), index.table());
      const std::vector<float> values = {1, 0};
      const Tensor one = Tensor::of(std::span(values), {1, 1, 1, 2});
      judge(fmt::format("attend, scores that {}", sign > 0 ? "grow" : "fall"), [&] {
        attend(last, one, one, one, Pool::in_place(keys), Pool::in_place(gapped(DType::f32, {context, 1, 2}, 9, 0)), {}, on_);
      });
    }
  }

  void rules(std::int64_t keys, std::int64_t values, std::int64_t gap) {
    const std::string name = fmt::format("{} keys, {} values, gaps of {}", keys, values, gap);
    const double reach = 1.0 / static_cast<double>(keys < 4 ? 2 : keys);
    const auto inputs = [&](Shape lead) {
      const auto of = [&](std::int64_t heads, std::int64_t size, std::uint64_t seed, double most) {
        Shape shape = lead;
        shape.insert(shape.end(), {heads, size});
        return gapped(DType::bf16, std::move(shape), seed, gap, 0, most);
      };
      GdnInputs made;
      made.q = of(1, keys, 1, 1);
      made.k = of(1, keys, 2, reach);
      made.v = of(2, values, 3, 1);
      return made;
    };
    const Tensor states = gapped(DType::f32, {5, 2, values, keys}, 4, gap);
    const auto pool = [&] { return Pool::in_place(states); };
    judge("prefill, " + name, [&] {
      GdnPrefill args;
      args.inputs = inputs({7});
      args.cu_seqlens = i32({0, 4, 4, 7}, {4});
      args.initial_state = states;
      args.state_indices = i64({1, 0, -1}, {3});
      args.output_state = pool();
      args.output_state_indices = i32({2, 3, 4}, {3});
      args.output_final_state = true;
      gdn_prefill(args, on_);
    });
    judge("decode, " + name, [&] {
      GdnDecode args;
      args.inputs = inputs({3, 1});
      args.state_pool = pool();
      args.state_indices = i32({1, -1, 0}, {3});
      args.output_state_indices = i64({4, 2, 0}, {3});
      gdn_decode(args, on_);
    });
    judge("verify, " + name, [&] {
      const Index index = Index::make(i64({2, 3, 3, 4}, {1, 4}), i64({0, 1, 2, 3, 4, 5}, {1, 6}))
                              .draft(i64({6, 7, 8, 9}, {1, 4}), bools({1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1}, {1, 4, 4}));
      gdn_verify(index, inputs({1, 4}), pool(), i32({1}, {1}), i64({0, 2, 3, 4}, {1, 4}), on_);
    });
  }

  conformance::Judging judging_;
  bool stop_at_failure_;
  On on_;
  LayoutReport report_;
};

}  // namespace

LayoutReport judge_layouts(const Backend& candidate, bool stop_at_failure) { return Layouts(candidate, stop_at_failure).run(); }

}  // namespace quire::gpu::test
