// Streams, events, device memory and staging, on a backend whose work is done only when somebody waits for it.
#include <quire/stream.h>

#include "core_test_helpers.h"
#include "device_backend.h"

using namespace quire;
using namespace quire::test;

namespace {

const Device first{first_device.type, first_device.id};
const Device second{second_device.type, second_device.id};

// extend of one token at position 1 into a pool of three slots.
struct Extend {
  Tensor pos = i64({1}, {1, 1}), table = i64({2, 0}, {1, 2});
  Tensor values = f32({7}, {1, 1, 1}), pool = f32({1, 2, 3}, {3, 1});
  Index index() const { return Index::make(pos, table); }
  Extend on(Device device, const Stream* stream = nullptr) const {
    const auto there = [&](const Tensor& tensor) { return copy_to(tensor, device_backend(), device, stream); };
    return {there(pos), there(table), there(values), there(pool)};
  }
};
const Numbers pool_after = {7, 2, 3};
const Numbers seen_after = {3, 7};

Numbers numbers_of(const Tensor& tensor) { return numbers(copy_to(tensor, device_backend(), Device{})); }

}  // namespace

TEST_CASE("ops run where their tensors lie, and their results lie there") {
  for (const Device& device : {first, second}) {
    const Extend here = Extend().on(device);
    const Extended extended = extend(here.index(), here.values, Pool::in_place(here.pool), {&device_backend(), nullptr});
    CHECK(extended.seen.device() == device);
    CHECK(numbers_of(extended.seen) == seen_after);
    CHECK(numbers_of(here.pool) == pool_after);
    // A pool that is not given up is copied on its device.
    const Extend again = Extend().on(device);
    const Extended copied = extend(again.index(), again.values, again.pool, {&device_backend(), nullptr});
    CHECK(numbers_of(again.pool) == Numbers{1, 2, 3});
    CHECK(numbers_of(copied.pool) == pool_after);
    CHECK(whole_numbers(copy_to(positions(again.index(), {&device_backend(), nullptr}), device_backend(), Device{})) == Integers{1});
    CHECK(whole_numbers(copy_to(next_positions(again.index(), {&device_backend(), nullptr}), device_backend(), Device{})) == Integers{2});
  }
  CHECK(live_allocations() == 0);
}

TEST_CASE("nothing is transferred silently: host tensors on devices need stage_on") {
  const Extend host;
  const Caught error = caught([&] { (void)extend(host.index(), host.values, host.pool, {&device_backend(), nullptr}); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(contains(error.message, "stage_on"));
  const On staged = on_host_tensors(device_backend());
  REQUIRE(staged.stage_on.has_value());
  CHECK(*staged.stage_on == first);
  CHECK_FALSE(on_host_tensors(backend("reference")).stage_on.has_value());
  const Extended extended = extend(host.index(), host.values, host.pool, staged);
  CHECK(numbers(extended.seen) == seen_after);
  CHECK(numbers(extended.pool) == pool_after);
  CHECK(numbers(host.pool) == Numbers{1, 2, 3});
  On elsewhere = staged;
  elsewhere.stage_on = second;
  CHECK(numbers(extend(host.index(), host.values, host.pool, elsewhere).pool) == pool_after);
  CHECK(live_allocations() == 0);
}

TEST_CASE("staging keeps strides, gaps and tensors that share memory") {
  const Tensor pool = Tensor::empty_padded(DType::f32, {3, 1}, 4);
  for (int i = 0; i < 9; ++i) pool.data<float>()[i] = static_cast<float>(i);
  const Extend host;
  (void)extend(host.index(), host.values, Pool::in_place(pool), on_host_tensors(device_backend()));
  CHECK(pool.data<float>()[0] == 7);
  for (int i = 1; i < 9; ++i) CHECK(pool.data<float>()[i] == static_cast<float>(i));
}

TEST_CASE("a stream's work is done in its order, and not before somebody waits") {
  {
    const Extend host;  // copied from when the stream comes to it
    const Stream stream(device_backend());
    const Extend here = host.on(first, &stream);
    const On on{nullptr, &stream};
    const Extended extended = extend(here.index(), here.values, Pool::in_place(here.pool), on);
    const Tensor seen = copy_to(extended.seen, device_backend(), Device{}, &stream);
    const Tensor pool = copy_to(here.pool, device_backend(), Device{}, &stream);
    seen.data<float>()[0] = -1;
    CHECK(seen.data<float>()[0] == -1);  // nothing has run
    stream.synchronize();
    CHECK(numbers(seen) == seen_after);
    CHECK(numbers(pool) == pool_after);
  }
  CHECK(live_allocations() == 0);
}

TEST_CASE("staged calls on a stream are done in its order") {
  const Stream stream(device_backend());
  const Extend host;
  Tensor pool = host.pool.clone();
  const Extended extended = extend(host.index(), host.values, Pool::in_place(pool), on_host_tensors(device_backend(), &stream));
  CHECK(numbers(pool) == Numbers{1, 2, 3});
  stream.synchronize();
  CHECK(numbers(pool) == pool_after);
  CHECK(numbers(extended.seen) == seen_after);
}

TEST_CASE("events order streams, also of two devices; without one nothing does") {
  const Stream writes(device_backend(), first), reads(device_backend(), second);
  const Extend here = Extend().on(first);
  (void)extend(here.index(), here.values, Pool::in_place(here.pool), {nullptr, &writes});
  const Tensor early = copy_to(here.pool, device_backend(), second, &reads);
  reads.synchronize();
  CHECK(numbers_of(early) == Numbers{1, 2, 3});
  Event written(device_backend(), first);
  written.wait(reads);  // never recorded: nobody waits
  written.record(writes);
  written.wait(reads);
  const Tensor late = copy_to(here.pool, device_backend(), second, &reads);
  reads.synchronize();
  CHECK(numbers_of(late) == pool_after);

  const Extend other = Extend().on(first);
  (void)extend(other.index(), other.values, Pool::in_place(other.pool), {nullptr, &writes});
  Event again(device_backend());
  again.record(writes);
  CHECK(numbers_of(other.pool) == Numbers{1, 2, 3});
  again.synchronize();
  CHECK(numbers_of(other.pool) == pool_after);
}

TEST_CASE("late errors surface where the stream is waited for, once") {
  const Stream stream(device_backend());
  const Extend here = Extend().on(first);
  fail_next_work("planted: late");
  (void)extend(here.index(), here.values, Pool::in_place(here.pool), {nullptr, &stream});
  const Caught error = caught([&] { stream.synchronize(); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::internal);
  CHECK(contains(error.message, "planted: late"));
  stream.synchronize();
}

TEST_CASE("streams, events and memory of other devices or backends are refused") {
  const Backend& reference = backend("reference");
  check_rejected([&] { const Stream stream(device_backend(), Device{}); }, "device", "the host", "device type 12 number 0, device type 12 number 1");
  check_rejected([&] { const Event event(reference, first); }, "device", "device type 12 number 0", "the host");
  check_rejected([&] { (void)empty_on(reference, first, DType::f32, {1}); }, "device", "device type 12", "backend reference");
  const Stream of_reference(reference), stream(device_backend(), second);
  const Extend host;
  check_rejected([&] { (void)positions(host.index(), {&device_backend(), &of_reference}); }, "stream", "reference", "deferred");
  Event event(device_backend());
  check_rejected([&] { event.record(of_reference); }, "stream", "reference", "deferred");
  check_rejected([&] { event.wait(of_reference); }, "stream", "reference", "deferred");
  const Extend here = host.on(first);
  check_rejected([&] { (void)extend(here.index(), here.values, Pool::in_place(here.pool), {nullptr, &stream}); }, "stream", "number 1", "number 0");
  // An index without a copy where the call runs.
  check_rejected([&] { (void)extend(host.index(), here.values, Pool::in_place(here.pool), {&device_backend(), nullptr}); }, "index", "device type 12 number 0", "the host");
  check_rejected([&] { (void)empty_on(device_backend(), first, DType::f32, {std::int64_t{1} << 62, 2}); }, "shape", "4611686018427387904", "2^63");
}

TEST_CASE("the reference's streams, events and memory") {
  const Backend& reference = backend("reference");
  const Stream stream(reference);
  CHECK(stream.device().is_host());
  const Extend host;
  const Extended extended = extend(host.index(), host.values, host.pool, {nullptr, &stream});
  Event event(reference);
  event.record(stream);
  event.wait(stream);
  event.synchronize();
  stream.synchronize();
  CHECK(numbers(extended.pool) == pool_after);
  CHECK(numbers(copy_to(extended.seen, reference, Device{})) == seen_after);
}
