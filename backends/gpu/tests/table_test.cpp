// The table of the C ABI: versions, struct sizes, errors, calls on devices and on the host, steps.
#include "core_test_helpers.h"

#include <quire/registry.h>
#include <quire/step.h>
#include <quire/stream.h>

#include <string>

QUIRE_BACKEND_EXPORT const quire_backend_table* quire_backend_query(const quire_host*, std::uint32_t, std::uint32_t, const char**);

using namespace quire;
using namespace quire::test;

namespace {

// Before the emulator first reads its settings.
const int two_devices = setenv("QUIRE_SIMT_DEVICES", "2", 1);

const quire_backend_table& table() { return *quire_backend_query(nullptr, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION, nullptr); }
const Backend& simt() {
  static const Backend backend(&table(), "(test)");
  return backend;
}
constexpr Device device0{QUIRE_DEVICE_EXTENSION, 0}, device1{QUIRE_DEVICE_EXTENSION, 1};

On on_simt() {
  On on;
  on.backend = &simt();
  return on;
}

bool last_error_says(const char* text) { return std::string(table().last_error()).find(text) != std::string::npos; }

}  // namespace

TEST_CASE("a host gets the table when its range of versions holds the table's") {
  CHECK(two_devices == 0);
  const char* reason = nullptr;
  const quire_host host{sizeof host, QUIRE_ABI_VERSION, "test"};
  CHECK(quire_backend_query(&host, 0, 1000, &reason) != nullptr);
  CHECK(reason == nullptr);
  CHECK(quire_backend_query(&host, QUIRE_ABI_VERSION + 1, 1000, &reason) == nullptr);
  CHECK(std::string(reason) == "it speaks ABI version 0");
  CHECK(quire_backend_query(&host, QUIRE_ABI_VERSION + 1, 1000, nullptr) == nullptr);
  CHECK(table().struct_size == sizeof(quire_backend_table));
  CHECK(table().semantics_version == QUIRE_SEMANTICS_VERSION);
}

TEST_CASE("a struct of an older reader is written as far as it goes") {
  quire_backend_info info;
  std::memset(&info, 0xa5, sizeof info);
  info.struct_size = offsetof(quire_backend_info, rank);
  REQUIRE(table().describe(&info) == QUIRE_OK);
  CHECK(info.struct_size == offsetof(quire_backend_info, rank));
  CHECK(std::string(info.name) == "simt");
  CHECK(info.rank == static_cast<std::int32_t>(0xa5a5a5a5));
  // One of a newer reader says how much of it was written.
  struct {
    quire_contract known;
    double unknown;
  } contract;
  std::memset(&contract, 0xa5, sizeof contract);
  contract.known.struct_size = sizeof contract;
  const double before = contract.unknown;
  REQUIRE(table().contract(QUIRE_OP_ATTEND, QUIRE_F32, QUIRE_F32, &contract.known) == QUIRE_OK);
  CHECK(contract.known.struct_size == sizeof(quire_contract));
  CHECK(std::memcmp(&contract.unknown, &before, sizeof before) == 0);
  quire_device_info device{};
  device.struct_size = offsetof(quire_device_info, name);
  REQUIRE(table().device_info(1, &device) == QUIRE_OK);
  CHECK(device.device.type == QUIRE_DEVICE_EXTENSION);
  CHECK(device.device.id == 1);
  CHECK(device.name == nullptr);
}

TEST_CASE("exact ops declare exactness, the others float32") {
  for (std::int32_t op = 0; op < QUIRE_OP_COUNT; ++op) {
    CAPTURE(op);
    const quire_contract contract = simt().contract(op, DType::f64, DType::f8_e5m2);
    const bool rounds = op == QUIRE_OP_ATTEND || op == QUIRE_OP_GDN_PREFILL || op == QUIRE_OP_GDN_DECODE || op == QUIRE_OP_GDN_VERIFY;
    CHECK(contract.u_product == (rounds ? 0x1p-24 : 0));
    CHECK(contract.u_exp == (rounds ? 0x1p-22 : 0));
    CHECK(contract.batch_invariant == 1);
    CHECK(contract.chunk_length == 1);
  }
  quire_contract contract{};
  contract.struct_size = sizeof contract;
  CHECK(table().contract(QUIRE_OP_COUNT, QUIRE_F32, QUIRE_F32, &contract) == QUIRE_UNSUPPORTED);
}

TEST_CASE("errors name the argument and what is allowed") {
  quire_device_info device{};
  device.struct_size = sizeof device;
  CHECK(table().device_info(2, &device) == QUIRE_INVALID_ARGUMENT);
  CHECK(std::string(table().last_error()) == "ordinal: 2; allowed: 0 to 1");
  void* data = &device;
  CHECK(table().allocate({QUIRE_DEVICE_CUDA, 0}, nullptr, 16, &data) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("device: device type 2 number 0; allowed: device type 12 numbers 0 to 1"));
  CHECK(data == nullptr);
  CHECK(table().event_record(nullptr, nullptr) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("event: nothing"));
  CHECK(table().launch(nullptr, nullptr, nullptr, 0) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("step: nothing"));
  CHECK(table().supports(99, nullptr) == QUIRE_UNSUPPORTED);
  CHECK(last_error_says("op 99 is not known"));
  CHECK(table().supports(QUIRE_OP_MASK, nullptr) == QUIRE_INVALID_ARGUMENT);
  const quire_mask_args old{sizeof(std::size_t), nullptr, nullptr};
  CHECK(table().run(nullptr, QUIRE_OP_MASK, &old, nullptr, 0) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("args: a struct of 8 bytes; allowed: 24 or more"));
  quire_step* step = reinterpret_cast<quire_step*>(&device);
  CHECK(table().capture({QUIRE_DEVICE_EXTENSION, 0}, nullptr, 0, &step) == QUIRE_INVALID_ARGUMENT);
  CHECK(step == nullptr);
  CHECK(table().step_free(nullptr) == QUIRE_OK);
  CHECK(table().stream_destroy(nullptr) == QUIRE_OK);
  CHECK(table().synchronize(nullptr) == QUIRE_OK);
}

TEST_CASE("calls run on the host and on each device, with the same bits") {
  const Index index = rows(8, {3, 2});
  const Tensor values = filled(DType::f16, {2, 3, 5}, 1), pool = filled(DType::f16, {16, 5}, 2);
  const Extended on_host = extend(index, values, Tensor(pool), on_simt());
  CHECK(same_bits(on_host.seen, extend(index, values, Tensor(pool)).seen));
  for (const Device device : {device0, device1}) {
    const Stream stream(simt(), device);
    On on = on_simt();
    on.stream = &stream;
    const Tensor there = copy_to(values, simt(), device), pool_there = copy_to(pool, simt(), device);
    const Index placed = Index::make(copy_to(index.pos(), simt(), device), copy_to(index.table(), simt(), device));
    const Extended result = extend(placed, there, Pool::in_place(pool_there), on);
    stream.synchronize();
    CHECK(result.seen.device() == device);
    CHECK(same_bits(copy_to(result.seen, simt(), Device{}), on_host.seen));
    CHECK(same_bits(copy_to(pool_there, simt(), Device{}), on_host.pool));
  }
}

TEST_CASE("tensors in two places, or on another backend's device, are turned down with a reason") {
  Tensor pos = i64({0, 1}, {1, 2}), out = Tensor::zeros(DType::i64, {1, 2});
  quire_tensor pos_view = pos.view(), out_view = out.view();
  quire_index index{};
  index.struct_size = sizeof index;
  index.kind = QUIRE_INDEX_WHOLE;
  index.pos = &pos_view;
  index.reads = 1;
  const quire_positions_args args{sizeof args, &index, &out_view};
  CHECK(table().supports(QUIRE_OP_POSITIONS, &args) == QUIRE_OK);
  out_view.device = {QUIRE_DEVICE_EXTENSION, 0};
  CHECK(table().supports(QUIRE_OP_POSITIONS, &args) == QUIRE_UNSUPPORTED);
  CHECK(last_error_says("index.pos lies on the host, positions on device type 12 number 0"));
  out_view.device = pos_view.device = {QUIRE_DEVICE_CUDA, 0};
  CHECK(table().supports(QUIRE_OP_POSITIONS, &args) == QUIRE_UNSUPPORTED);
  out_view.device = pos_view.device = {QUIRE_DEVICE_EXTENSION, 2};
  CHECK(table().supports(QUIRE_OP_POSITIONS, &args) == QUIRE_UNSUPPORTED);
  out_view.device = pos_view.device = {QUIRE_DEVICE_EXTENSION, 1};
  const Stream other(simt(), device0);
  CHECK(table().run(other.get(), QUIRE_OP_POSITIONS, &args, nullptr, 0) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("stream: one of device number 0; allowed: device number 1"));
}

TEST_CASE("a workspace too small is refused before anything runs") {
  const Index index = rows(4, {2}).draft(i64({2, 3}, {1, 2}), bools({1, 0, 1, 1}, {1, 2, 2}));
  const IndexAbi abi(index);
  const Tensor q = filled(DType::f32, {1, 2, 1, 4}, 1), pool = filled(DType::f32, {3, 1, 4, 4}, 2),
               output = Tensor::zeros(DType::f32, {1, 2, 1, 4});
  const Tensor reads = i32({0}, {1}), slots = i32({1, 2}, {1, 2});
  const quire_tensor views[] = {q.view(), pool.view(), output.view(), reads.view(), slots.view()};
  quire_gdn_verify_args args{};
  args.struct_size = sizeof args;
  args.index = abi.get();
  args.q = args.k = args.v = &views[0];
  args.state_pool = &views[1];
  args.output = &views[2];
  args.state_indices = &views[3];
  args.state_slots = &views[4];
  args.scale = 1;
  std::size_t bytes = 0;
  REQUIRE(table().workspace(QUIRE_OP_GDN_VERIFY, &args, &bytes) == QUIRE_OK);
  CHECK(bytes == 2 * 2 * 8 + 2 * 4 * 4 * 4);
  std::vector<std::byte> memory(bytes);
  const std::string before = ::quire::test::bytes(pool);
  CHECK(table().run(nullptr, QUIRE_OP_GDN_VERIFY, &args, memory.data(), bytes - 1) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("workspace: 159 bytes; allowed: 160 or more"));
  CHECK(table().run(nullptr, QUIRE_OP_GDN_VERIFY, &args, nullptr, bytes) == QUIRE_INVALID_ARGUMENT);
  CHECK(::quire::test::bytes(pool) == before);
  CHECK(table().run(nullptr, QUIRE_OP_GDN_VERIFY, &args, memory.data(), bytes) == QUIRE_OK);
  CHECK(::quire::test::bytes(pool) != before);
}

TEST_CASE("a step is captured once and launched with other positions, tables and values") {
  const auto q_at = [](std::uint64_t seed) { return filled(DType::f32, {2, 3, 4, 8}, seed); };
  const auto k_at = [](std::uint64_t seed) { return filled(DType::f32, {2, 3, 2, 8}, seed); };
  Tensor q = q_at(1), k = k_at(2), v = k_at(3), k_pool = filled(DType::f32, {16, 2, 8}, 4), v_pool = filled(DType::f32, {16, 2, 8}, 5);
  const Index index = rows(8, {3, 2});
  Capture capture(simt(), device0);
  const Attended captured = attend(index, q, k, v, Pool::in_place(k_pool), Pool::in_place(v_pool), {}, capture.on());
  const Step step = capture.finish();
  const std::string pool_before = bytes(k_pool);

  for (std::uint64_t round = 0; round < 3; ++round) {
    CAPTURE(round);
    const Tensor other_q = q_at(10 + round), other_k = k_at(20 + round), other_v = k_at(30 + round);
    const Tensor other_k_pool = filled(DType::f32, {16, 2, 8}, 40 + round), other_v_pool = filled(DType::f32, {16, 2, 8}, 50 + round);
    const Index other_index = rows(8, {static_cast<std::int64_t>(3), static_cast<std::int64_t>(round) + 1});
    const Tensor k_copy = other_k_pool.clone(), v_copy = other_v_pool.clone();
    Bindings bindings;
    bindings.tensors = {{q, other_q}, {k, other_k}, {v, other_v}, {k_pool, other_k_pool}, {v_pool, other_v_pool}};
    bindings.indices = {{index, other_index}};
    step.launch(nullptr, bindings);
    const Attended direct = attend(other_index, other_q, other_k, other_v, Pool::in_place(k_copy), Pool::in_place(v_copy), {}, on_simt());
    CHECK(same_bits(captured.out, direct.out));
    CHECK(same_bits(captured.lse, direct.lse));
    CHECK(same_bits(other_k_pool, k_copy));
    CHECK(same_bits(other_v_pool, v_copy));
  }
  CHECK(bytes(k_pool) == pool_before);  // its values were never its own to change
}

namespace {

// A step of one call, positions on the host.
struct PositionsStep {
  PositionsStep() {
    index.struct_size = sizeof index;
    index.kind = QUIRE_INDEX_WHOLE;
    index.pos = &pos_view;
    index.reads = 1;
    const quire_call call{sizeof call, QUIRE_OP_POSITIONS, &args};
    REQUIRE(table().capture({QUIRE_DEVICE_EXTENSION, 0}, &call, 1, &step) == QUIRE_OK);
  }
  ~PositionsStep() { CHECK(table().step_free(step) == QUIRE_OK); }
  PositionsStep(const PositionsStep&) = delete;
  PositionsStep& operator=(const PositionsStep&) = delete;

  quire_status launch(const quire_tensor* first, const quire_tensor* second) {
    const quire_tensor* const tensors[] = {first, second};
    return table().launch(nullptr, step, tensors, 2);
  }

  Tensor pos = i64({-1, 0, 1, 2}, {1, 4}), out = i64({9, 9, 9, 9}, {1, 4});
  quire_tensor pos_view = pos.view(), out_view = out.view();
  quire_index index{};
  quire_positions_args args{sizeof(quire_positions_args), &index, &out_view};
  quire_step* step = nullptr;
};

}  // namespace

TEST_CASE("capture runs nothing, and a launch takes the captured layout alone") {
  PositionsStep captured;
  CHECK(whole_numbers(captured.out) == Integers{9, 9, 9, 9});
  const quire_tensor out = captured.out_view;
  const auto refused = [&](const quire_tensor& pos, const char* text) {
    CHECK(captured.launch(&pos, &out) == QUIRE_INVALID_ARGUMENT);
    CAPTURE(table().last_error());
    CHECK(last_error_says("index.pos: "));
    CHECK(last_error_says(text));
    CHECK(whole_numbers(captured.out) == Integers{9, 9, 9, 9});
  };
  quire_tensor wrong = captured.pos_view;
  wrong.dtype = QUIRE_I32;
  refused(wrong, "dtype 4 shape [1, 4] strides [4, 1] on the host, as tensor 0 of the step; allowed: dtype 5");
  wrong = captured.pos_view;
  wrong.device = {QUIRE_DEVICE_EXTENSION, 0};
  refused(wrong, "device type 12 number 0");
  const std::int64_t shape[] = {1, 3}, strides[] = {5, 1};
  wrong = captured.pos_view;
  wrong.shape = shape;
  refused(wrong, "shape [1, 3]");
  wrong = captured.pos_view;
  wrong.strides = strides;
  refused(wrong, "strides [5, 1]");
  CHECK(captured.launch(nullptr, &out) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("index.pos: nothing"));
  const quire_tensor* const one[] = {&captured.pos_view};
  CHECK(table().launch(nullptr, captured.step, one, 1) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error_says("tensor_count: 1; allowed: the 2 of the step"));
  CHECK(table().launch(nullptr, captured.step, nullptr, -1) == QUIRE_INVALID_ARGUMENT);

  CHECK(captured.launch(&captured.pos_view, &out) == QUIRE_OK);
  CHECK(whole_numbers(captured.out) == Integers{0, 0, 1, 2});
  // Later launches take what stands in the tensors then, and other tensors.
  captured.pos.data<std::int64_t>()[3] = 0;
  CHECK(captured.launch(&captured.pos_view, &out) == QUIRE_OK);
  CHECK(whole_numbers(captured.out) == Integers{0, 0, 1, 0});
  const Tensor other = i64({3, 2, 1, -7}, {1, 4}), other_out = i64({9, 9, 9, 9}, {1, 4});
  const quire_tensor other_view = other.view(), other_out_view = other_out.view();
  CHECK(captured.launch(&other_view, &other_out_view) == QUIRE_OK);
  CHECK(whole_numbers(other_out) == Integers{3, 2, 1, 0});
  CHECK(whole_numbers(captured.out) == Integers{0, 0, 1, 0});
}

TEST_CASE("a step whose calls can't run is not captured") {
  const Tensor q = filled(DType::f32, {1, 1, 1, 257}, 1), pool = filled(DType::f32, {1, 1, 257, 257}, 2),
               output = Tensor::zeros(DType::f32, {1, 1, 1, 257});
  const Tensor reads = i32({0}, {1});
  const quire_tensor views[] = {q.view(), pool.view(), output.view(), reads.view()};
  quire_gdn_decode_args args{};
  args.struct_size = sizeof args;
  args.q = args.k = args.v = &views[0];
  args.state_pool = &views[1];
  args.output = &views[2];
  args.state_indices = &views[3];
  const quire_call call{sizeof call, QUIRE_OP_GDN_DECODE, &args};
  quire_step* step = nullptr;
  CHECK(table().capture({QUIRE_DEVICE_EXTENSION, 0}, &call, 1, &step) == QUIRE_UNSUPPORTED);
  CHECK(step == nullptr);
  CHECK(last_error_says("q: keys of 257 elements"));
}
