// Captured steps: recorded once, launched with other tensors, refused under another structure.
#include <quire/step.h>

#include "core_test_helpers.h"
#include "device_backend.h"

using namespace quire;
using namespace quire::test;

namespace {

const Device device{first_device.type, first_device.id};

// Two lanes of one token, two slots each; a head of two keys.
struct Decode {
  Index index;
  Tensor q, k, v, k_pool, v_pool;
  static Decode at(std::int64_t position, std::uint64_t seed, std::int64_t columns = 4) {
    Tensor table = Tensor::empty(DType::i64, {2, columns});
    for (std::int64_t n = 0; n < 2 * columns; ++n) table.data<std::int64_t>()[n] = (n + static_cast<std::int64_t>(seed)) % (2 * columns);
    const auto f = [&](Shape shape, std::uint64_t more) { return filled(DType::f32, std::move(shape), 10 * seed + more); };
    return {Index::make(i64({position, position - 1}, {2, 1}), table), f({2, 1, 1, 2}, 1), f({2, 1, 1, 2}, 2), f({2, 1, 1, 2}, 3), f({8, 1, 2}, 4), f({8, 1, 2}, 5)};
  }
  Decode copy() const { return {index, q, k, v, k_pool.clone(), v_pool.clone()}; }
  Decode on(const Backend& backend, Device where) const {
    const auto there = [&](const Tensor& tensor) { return copy_to(tensor, backend, where); };
    return {Index::make(there(index.pos()), there(index.table())), there(q), there(k), there(v), there(k_pool), there(v_pool)};
  }
  Attended attend(const On& on = {}) const { return quire::attend(index, q, k, v, Pool::in_place(k_pool), Pool::in_place(v_pool), {}, on); }
};

std::string host_bytes(const Tensor& tensor, const Backend& backend) { return bytes(copy_to(tensor, backend, Device{})); }

Bindings all_of(const Decode& from, const Decode& to) {
  return {{{from.q, to.q}, {from.k, to.k}, {from.v, to.v}, {from.k_pool, to.k_pool}, {from.v_pool, to.v_pool}}, {{from.index, to.index}}};
}

}  // namespace

TEST_CASE("a step captured once and launched with other positions, tables, values and pools equals the calls") {
  struct Place {
    const Backend& backend;
    Device where;
    bool stage;
  };
  for (const Place& place : {Place{backend("reference"), Device{}, false}, Place{device_backend(), device, false}, Place{device_backend(), device, true}}) {
    const Device lies = place.stage ? Device{} : place.where;
    const Decode captured = Decode::at(1, 1).on(place.backend, lies);
    const std::string untouched = host_bytes(captured.k_pool, place.backend);
    Capture capture(place.backend, place.where, place.stage);
    const Attended result = captured.attend(capture.on());
    const Step step = capture.finish();
    CHECK(host_bytes(captured.k_pool, place.backend) == untouched);  // nothing has run
    const Stream stream(place.backend, place.where);
    for (const std::int64_t position : {3, 2}) {
      const Decode expected = Decode::at(position, static_cast<std::uint64_t>(position) + 5);
      const Decode given = expected.copy().on(place.backend, lies);
      step.launch(stream, all_of(captured, given));
      stream.synchronize();
      const Attended right = expected.attend();
      CHECK(host_bytes(result.out, place.backend) == bytes(right.out));
      CHECK(host_bytes(result.lse, place.backend) == bytes(right.lse));
      CHECK(host_bytes(given.k_pool, place.backend) == bytes(right.k_pool));
      CHECK(host_bytes(given.v_pool, place.backend) == bytes(right.v_pool));
      CHECK(host_bytes(captured.k_pool, place.backend) == untouched);
    }
    // Without bindings, on what was captured; a null stream is synchronous.
    step.launch(nullptr);
    CHECK(host_bytes(result.out, place.backend) == bytes(Decode::at(1, 1).attend().out));
  }
}

TEST_CASE("calls of a step follow each other, and results can be bound elsewhere") {
  const Tensor values = f32({5, 6}, {1, 2, 1}), pool = f32({0, 0, 0}, {3, 1});
  const Index index = Index::make(i64({0, 1}, {1, 2}), i64({1, 2}, {1, 2}));
  Capture capture(backend("reference"), Device{});
  const Extended one = extend(index, values, Pool::in_place(pool), capture.on());
  // The second reads what the first stored.
  const Extended two = extend(index.window(1), one.seen.reshaped({1, 2, 1}), Pool::in_place(pool), capture.on());
  const Step step = capture.finish();
  const Tensor seen = f32({-1, -1}, {1, 2, 1});
  step.launch(nullptr, {{{two.seen, seen}}, {}});
  CHECK(numbers(pool) == Numbers{0, 5, 6});
  CHECK(numbers(seen) == Numbers{5, 6});
  step.launch(nullptr, {{{values, f32({8, 9}, {1, 2, 1})}}, {}});
  CHECK(numbers(pool) == Numbers{0, 8, 9});
  CHECK(numbers(two.seen) == Numbers{8, 9});
}

TEST_CASE("another structure is refused, and the difference of the two is shown") {
  const Decode decode = Decode::at(1, 1);
  Capture capture(backend("reference"), Device{});
  (void)decode.attend(capture.on());
  const Step step = capture.finish();
  const std::string before = bytes(decode.k_pool);
  const auto launch = [&](const Index& other) { return [&step, &decode, other] { step.launch(nullptr, {{}, {{decode.index, other}}}); }; };
  check_rejected(launch(decode.index.window(3)), "index", "window: absent captured, 3 given", "equal structure");
  check_rejected(launch(Decode::at(1, 1, 5).index), "index", "tokens.table: i64[2, 4] captured, i64[2, 5] given", "equal structure");
  const Index with_row = Index::make(decode.index.pos(), decode.index.table(), i64({0, 1}, {2}));
  check_rejected(launch(with_row), "index", "tokens.row: absent captured, present given", "equal structure");
  check_rejected(launch(decode.index.select(i64({0, 0}, {2, 1, 1}))), "index", "columns: absent captured, present given; columns: absent captured, i64[2, 1, 1] given", "equal");
  check_rejected(launch(Index::whole(2, 1)), "index", "tokens: tabled captured, whole given", "equal structure");
  CHECK(bytes(decode.k_pool) == before);
}

TEST_CASE("tensors that differ from the captured ones, or are not the step's, are refused and nothing runs") {
  const Decode decode = Decode::at(1, 1);
  Capture capture(backend("reference"), Device{});
  (void)decode.attend(capture.on());
  const Step step = capture.finish();
  const std::string before = bytes(decode.k_pool);
  const auto launch = [&](const Tensor& from, const Tensor& to) { return [&step, from, to] { step.launch(nullptr, {{{from, to}}, {}}); }; };
  check_rejected(launch(decode.q, filled(DType::f32, {2, 1, 1, 3}, 1)), "tensors", "f32[2, 1, 1, 3]", "equal dtype, shape");
  check_rejected(launch(decode.q, filled(DType::f16, {2, 1, 1, 2}, 1)), "tensors", "f16", "equal dtype");
  check_rejected(launch(decode.q, Tensor::empty_padded(DType::f32, {2, 1, 1, 2}, 4)), "tensors", "strides", "strides");
  check_rejected(launch(decode.q, copy_to(decode.q, device_backend(), device)), "tensors", "device type 12", "device");
  check_rejected(launch(decode.q, Tensor()), "tensors", "nothing", "equal dtype");
  check_rejected(launch(filled(DType::f32, {1}, 1), filled(DType::f32, {1}, 2)), "tensors", "the step does not use", "captured calls");
  const Stream stream(device_backend());
  check_rejected([&] { step.launch(stream); }, "stream", "deferred", "reference");
  CHECK(bytes(decode.k_pool) == before);
}

TEST_CASE("captures: what can't be recorded is refused, and keys tell steps apart") {
  const Decode decode = Decode::at(1, 1);
  const auto key = [&](const Index& index, std::optional<double> scale) {
    Capture capture(backend("reference"), Device{});
    (void)attend(index, decode.q, decode.k, decode.v, Pool::in_place(decode.k_pool), Pool::in_place(decode.v_pool), {scale, {}, {}}, capture.on());
    return capture.key();
  };
  CHECK(key(decode.index, {}) == key(Decode::at(3, 2).index, {}));
  CHECK(difference(key(decode.index, 1.0), key(decode.index, 2.0)) == "0.scale: 1 captured, 2 given");
  CHECK(difference(key(decode.index, {}), key(decode.index.window(2), {})) == "0.index.window: absent captured, 2 given");
  Capture capture(backend("reference"), Device{});
  check_rejected([&] { (void)capture.finish(); }, "capture", "no call", "one op");
  check_rejected([&] { (void)attend(decode.index, decode.q, decode.k, decode.v, decode.k_pool, Pool::in_place(decode.v_pool), {}, capture.on()); }, "k_pool",
                 "to be copied", "in place");
  (void)decode.attend(capture.on());
  const Step step = capture.finish();
  check_rejected([&] { (void)capture.on(); }, "capture", "finished", "one capture");
  check_rejected([&] { (void)capture.finish(); }, "capture", "finished", "one capture");
}

TEST_CASE("a step keeps what it was captured on alive") {
  Capture capture(device_backend(), device);
  std::optional<Step> step;
  {
    const Decode decode = Decode::at(1, 1).on(device_backend(), device);
    (void)decode.attend(capture.on());
    step = capture.finish();
  }
  CHECK(live_allocations() == 9);  // pos, table, q, k, v, two pools, two results
  step->launch(nullptr);
  step.reset();
  CHECK(live_allocations() == 0);
}
