// The template plugin at its table: what `quire conformance` does not ask (sizes of structs, errors, memory, captured steps, bad numbers), and
// a few thousand cases of the suite.
#include <doctest/doctest.h>
#include <quire/backend.h>
#include <quire/registry.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "judge/judge_call.h"
#include "run/runner.h"

extern "C" const quire_backend_table* quire_backend_query(const quire_host*, std::uint32_t, std::uint32_t, const char**);

namespace {

using quire::Backend;
using Sizes = std::vector<std::int64_t>;

const quire_device host = {QUIRE_DEVICE_CPU, 0};

const quire_backend_table& table() {
  static const quire_host caller = {sizeof caller, QUIRE_ABI_VERSION, "test"};
  const char* reason = nullptr;
  const quire_backend_table* found = quire_backend_query(&caller, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION, &reason);
  REQUIRE(found != nullptr);
  return *found;
}

const Backend& candidate() {
  static const Backend backend(&table(), "(test)");
  return backend;
}

std::string last_error() { return table().last_error(); }

// A tensor with memory, shape and strides of its own.
struct Owned {
  std::vector<std::byte> bytes;
  Sizes shape, strides;
  quire_tensor tensor{};
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

template <typename T>
std::unique_ptr<Owned> owned(quire_dtype dtype, Sizes shape, const std::vector<T>& values) {
  auto made = std::make_unique<Owned>();
  made->shape = std::move(shape);
  made->strides.resize(made->shape.size());
  std::int64_t count = 1;
  for (std::size_t axis = made->shape.size(); axis-- > 0;) {
    made->strides[axis] = count;
    count *= made->shape[axis];
  }
  made->bytes.resize(static_cast<std::size_t>(count) * sizeof(T));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) && !values.empty(); ++i) made->template data<T>()[i] = values[i % values.size()];
  made->tensor = {sizeof made->tensor, made->bytes.data(), made->shape.data(), made->strides.data(), static_cast<std::int32_t>(made->shape.size()),
                  dtype,               host};
  return made;
}
auto integers(Sizes shape, const Sizes& values) { return owned<std::int64_t>(QUIRE_I64, std::move(shape), values); }
auto floats(Sizes shape, const std::vector<float>& values) { return owned<float>(QUIRE_F32, std::move(shape), values); }

// Two lanes on one table of three columns, reading positions, with a table of blocks beside it.
struct ExtendCall {
  std::unique_ptr<Owned> pos = integers({2, 2}, {0, 1, 2, -1}), table = integers({2, 3}, {4, 1, 2, 0, 3, 5}), row = integers({2}, {0, 1});
  std::unique_ptr<Owned> blocks = integers({2, 2}, {0, 1, 2, 3}), values = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::unique_ptr<Owned> pool = floats({6, 2}, {-1}), seen = floats({2, 3, 2}, {9});
  quire_block_table block_table = {2, &blocks->tensor};
  quire_index index = {sizeof index, QUIRE_INDEX_TABLED, &pos->tensor, &table->tensor, &row->tensor, 1, &block_table, 1, 0, nullptr, nullptr, nullptr};
  quire_extend_args args = {sizeof args, &index, &values->tensor, &pool->tensor, &seen->tensor};
};

struct DecodeCall {
  std::unique_ptr<Owned> q = floats({2, 1, 1, 2}, {1, 0.5F, -1, 2}), v = floats({2, 1, 1, 2}, {1, 2, 3, 4});
  std::unique_ptr<Owned> state = floats({3, 1, 2, 2}, {0.25F, -0.5F, 1}), rows = integers({2}, {2, 0}), output = floats({2, 1, 1, 2}, {9});
  quire_gdn_decode_args args = {sizeof args, &q->tensor, &q->tensor, &v->tensor,     nullptr,         nullptr, nullptr,         nullptr, nullptr,
                                nullptr,     &state->tensor, &rows->tensor, nullptr, &output->tensor, 0.5,     1};
};

quire_status run(quire_op op, const void* args) {
  std::size_t bytes = 0;
  REQUIRE(table().workspace(op, args, &bytes) == QUIRE_OK);
  void* workspace = nullptr;
  REQUIRE(table().allocate(host, nullptr, bytes, &workspace) == QUIRE_OK);
  const quire_status status = table().run(nullptr, op, args, workspace, bytes);
  REQUIRE(table().free(host, nullptr, workspace) == QUIRE_OK);
  return status;
}

}  // namespace

TEST_CASE("template: the query answers for its version and says which that is") {
  const quire_host caller = {sizeof caller, 8, "test"};
  const char* reason = nullptr;
  CHECK(quire_backend_query(&caller, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION + 5, &reason) != nullptr);
  CHECK(quire_backend_query(&caller, QUIRE_ABI_VERSION + 1, QUIRE_ABI_VERSION + 5, &reason) == nullptr);
  CHECK(std::string(reason).find("version 0") != std::string::npos);
  CHECK(table().struct_size == sizeof(quire_backend_table));
  CHECK(table().semantics_version == QUIRE_SEMANTICS_VERSION);
}

TEST_CASE("template: answers fill no more of a struct than its size says") {
  quire_backend_info info;
  std::memset(static_cast<void*>(&info), 0x5A, sizeof info);
  info.struct_size = offsetof(quire_backend_info, rank);
  REQUIRE(table().describe(&info) == QUIRE_OK);
  CHECK(info.struct_size == offsetof(quire_backend_info, rank));
  CHECK(std::string(info.name) == "template");
  CHECK(info.rank == 0x5A5A5A5A);
  info.struct_size = sizeof info;
  REQUIRE(table().describe(&info) == QUIRE_OK);
  CHECK(info.rank < 0);  // never by default

  struct {
    quire_contract contract;
    std::int64_t behind = 7;
  } longer{};
  longer.contract.struct_size = sizeof longer;  // a newer host's struct
  REQUIRE(table().contract(QUIRE_OP_GDN_DECODE, QUIRE_F32, QUIRE_F32, &longer.contract) == QUIRE_OK);
  CHECK(longer.contract.struct_size == sizeof(quire_contract));
  CHECK(longer.behind == 7);
  CHECK(longer.contract.u_accumulate == 0x1p-24);
}

TEST_CASE("template: one device, the host; others are refused by name") {
  std::int32_t count = 0;
  REQUIRE(table().device_count(&count) == QUIRE_OK);
  REQUIRE(count == 1);
  quire_device_info info{};
  info.struct_size = sizeof info;
  REQUIRE(table().device_info(0, &info) == QUIRE_OK);
  CHECK(info.device.type == QUIRE_DEVICE_CPU);
  CHECK(info.reads_host == 1);
  CHECK(table().device_info(1, &info) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error() == "ordinal: 1; allowed: 0");
  for (const quire_device other : {quire_device{QUIRE_DEVICE_CUDA, 0}, {QUIRE_DEVICE_CPU, 1}, {QUIRE_DEVICE_CPU, -1}}) {
    void* data = &count;
    quire_stream* stream = nullptr;
    quire_event* event = nullptr;
    quire_step* step = nullptr;
    CHECK(table().allocate(other, nullptr, 8, &data) == QUIRE_INVALID_ARGUMENT);
    CHECK(data == nullptr);
    CHECK(table().stream_create(other, &stream) == QUIRE_INVALID_ARGUMENT);
    CHECK(table().event_create(other, &event) == QUIRE_INVALID_ARGUMENT);
    CHECK(table().capture(other, nullptr, 0, &step) == QUIRE_INVALID_ARGUMENT);
    CHECK(table().copy(nullptr, &count, other, &count, host, 4) == QUIRE_INVALID_ARGUMENT);
    CHECK(last_error().substr(0, 8) == "device: ");
  }
}

TEST_CASE("template: each thread has its own last error") {
  quire_device_info info{};
  CHECK(table().device_info(5, &info) == QUIRE_INVALID_ARGUMENT);
  std::string other = "unset";
  std::thread([&] { other = last_error(); }).join();
  CHECK(other.empty());
  CHECK(last_error() == "ordinal: 5; allowed: 0");
}

TEST_CASE("template: memory, streams and events") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1000}}) {
    void* data = nullptr;
    REQUIRE(table().allocate(host, nullptr, bytes, &data) == QUIRE_OK);
    CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
    std::memset(data, 1, bytes);
    CHECK(table().free(host, nullptr, data) == QUIRE_OK);
  }
  void* data = nullptr;
  CHECK(table().allocate(host, nullptr, std::numeric_limits<std::size_t>::max(), &data) == QUIRE_UNAVAILABLE);
  CHECK(data == nullptr);
  CHECK(table().free(host, nullptr, nullptr) == QUIRE_OK);

  quire_stream* stream = nullptr;
  quire_event* event = nullptr;
  REQUIRE(table().stream_create(host, &stream) == QUIRE_OK);
  REQUIRE(table().event_create(host, &event) == QUIRE_OK);
  CHECK(table().event_wait(event, stream) == QUIRE_OK);  // never recorded
  const std::int32_t from = 42;
  std::int32_t to = 0;
  CHECK(table().copy(stream, &to, host, &from, host, sizeof to) == QUIRE_OK);
  CHECK(table().copy(stream, nullptr, host, nullptr, host, 0) == QUIRE_OK);
  CHECK(table().event_record(event, stream) == QUIRE_OK);
  CHECK(table().event_synchronize(event) == QUIRE_OK);
  CHECK(to == 42);
  CHECK(table().synchronize(nullptr) == QUIRE_OK);
  CHECK(table().event_destroy(event) == QUIRE_OK);
  CHECK(table().stream_destroy(stream) == QUIRE_OK);
}

TEST_CASE("template: supports says which ops, dtypes and devices it lacks, and run refuses them") {
  ExtendCall extend;
  CHECK(table().supports(QUIRE_OP_EXTEND, &extend.args) == QUIRE_OK);
  for (const quire_op op : {-1, static_cast<int>(QUIRE_OP_COUNT), std::numeric_limits<int>::max()}) {
    CHECK(table().supports(op, &extend.args) == QUIRE_UNSUPPORTED);
    CHECK(last_error().find("not known") != std::string::npos);
    CHECK(table().run(nullptr, op, &extend.args, nullptr, 0) == QUIRE_UNSUPPORTED);
  }
  const quire_mask_args mask = {sizeof mask, &extend.index, &extend.seen->tensor};
  CHECK(table().supports(QUIRE_OP_MASK, &mask) == QUIRE_UNSUPPORTED);
  CHECK(last_error() == "mask is not written");

  extend.pool->tensor.device = {QUIRE_DEVICE_CUDA, 0};
  CHECK(table().supports(QUIRE_OP_EXTEND, &extend.args) == QUIRE_UNSUPPORTED);
  CHECK(last_error().substr(0, 5) == "pool ");
  extend.pool->tensor.device = host;

  DecodeCall decode;
  CHECK(table().supports(QUIRE_OP_GDN_DECODE, &decode.args) == QUIRE_OK);
  decode.state->tensor.dtype = QUIRE_F16;
  CHECK(table().supports(QUIRE_OP_GDN_DECODE, &decode.args) == QUIRE_UNSUPPORTED);
  CHECK(last_error() == "state_pool is f16; only f32 and bf16 are written");
  quire_contract contract{};
  contract.struct_size = sizeof contract;
  CHECK(table().contract(QUIRE_OP_GDN_DECODE, QUIRE_F32, QUIRE_F8_E5M2, &contract) == QUIRE_UNSUPPORTED);
  CHECK(table().contract(QUIRE_OP_ATTEND, QUIRE_F32, QUIRE_F32, &contract) == QUIRE_UNSUPPORTED);
}

TEST_CASE("template: structs of an older header are not read past their end") {
  ExtendCall extend;
  extend.args.struct_size = offsetof(quire_extend_args, seen);
  CHECK(table().supports(QUIRE_OP_EXTEND, &extend.args) == QUIRE_UNSUPPORTED);
  extend.args.struct_size = sizeof extend.args;
  extend.index.struct_size = offsetof(quire_index, sees);
  CHECK(table().supports(QUIRE_OP_EXTEND, &extend.args) == QUIRE_UNSUPPORTED);
  extend.index.struct_size = sizeof extend.index;
  extend.values->tensor.struct_size = offsetof(quire_tensor, device);
  CHECK(table().supports(QUIRE_OP_EXTEND, &extend.args) == QUIRE_UNSUPPORTED);
  CHECK(last_error().find("older header") != std::string::npos);
}

TEST_CASE("template: run wants the workspace that it asked for") {
  ExtendCall extend;
  std::size_t bytes = 0;
  REQUIRE(table().workspace(QUIRE_OP_EXTEND, &extend.args, &bytes) == QUIRE_OK);
  CHECK(bytes == 4 * sizeof(std::int64_t));  // three columns, and one count behind them
  std::array<std::int64_t, 4> workspace{};
  CHECK(table().run(nullptr, QUIRE_OP_EXTEND, &extend.args, nullptr, 0) == QUIRE_INVALID_ARGUMENT);
  CHECK(table().run(nullptr, QUIRE_OP_EXTEND, &extend.args, workspace.data(), bytes - 1) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error().substr(0, 17) == "workspace_bytes: ");
  CHECK(extend.pool->data<float>()[8] == -1);  // nothing was stored
  CHECK(table().run(nullptr, QUIRE_OP_EXTEND, &extend.args, workspace.data(), bytes) == QUIRE_OK);
  CHECK(extend.pool->data<float>()[8] == 1);
}

TEST_CASE("template: a captured step is a copy, and computes on whatever tensors it is launched with") {
  quire_step* step = nullptr;
  {
    ExtendCall extend;
    DecodeCall decode;
    const quire_call calls[] = {{sizeof(quire_call), QUIRE_OP_EXTEND, &extend.args}, {sizeof(quire_call), QUIRE_OP_GDN_DECODE, &decode.args}};
    REQUIRE(table().capture(host, calls, 2, &step) == QUIRE_OK);
    CHECK(extend.pool->data<float>()[8] == -1);  // capturing runs nothing
    for (Owned* gone : {extend.pos.get(), extend.table.get(), extend.values.get(), decode.q.get()}) {
      gone->shape.assign(gone->shape.size(), -7);
      gone->strides.assign(gone->strides.size(), -7);
      gone->tensor = {};
    }
    std::memset(static_cast<void*>(&extend.index), 0x5A, sizeof extend.index);
    extend.block_table = {};
    decode.args = {};
  }

  ExtendCall extend, other;
  DecodeCall decode, again;
  for (auto* call : {&extend, &other}) {
    call->pos->data<std::int64_t>()[3] = 1;  // the padded token is real now
    call->values->data<float>()[0] = 50;
  }
  REQUIRE(run(QUIRE_OP_EXTEND, &other.args) == QUIRE_OK);
  REQUIRE(run(QUIRE_OP_GDN_DECODE, &again.args) == QUIRE_OK);
  const quire_tensor* tensors[] = {&extend.pos->tensor,   &extend.table->tensor, &extend.row->tensor, &extend.blocks->tensor,
                                   &extend.values->tensor, &extend.pool->tensor,  &extend.seen->tensor, &decode.q->tensor,
                                   &decode.q->tensor,      &decode.v->tensor,     &decode.state->tensor, &decode.rows->tensor,
                                   &decode.output->tensor};
  // What is refused changes nothing.
  CHECK(table().launch(nullptr, step, tensors, 12) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error() == "tensors: 12; allowed: the step's 13");
  decode.v->shape[3] = 1;
  CHECK(table().launch(nullptr, step, tensors, 13) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error().substr(0, 29) == "tensors: number 9 (v) differs");
  decode.v->shape[3] = 2;
  decode.state->strides[0] = 5;
  CHECK(table().launch(nullptr, step, tensors, 13) == QUIRE_INVALID_ARGUMENT);
  decode.state->strides[0] = 4;
  extend.seen->tensor.dtype = QUIRE_I32;
  CHECK(table().launch(nullptr, step, tensors, 13) == QUIRE_INVALID_ARGUMENT);
  extend.seen->tensor.dtype = QUIRE_F32;
  extend.seen->tensor.device.id = 3;
  CHECK(table().launch(nullptr, step, tensors, 13) == QUIRE_INVALID_ARGUMENT);
  extend.seen->tensor.device.id = 0;
  CHECK(extend.pool->data<float>()[8] == -1);

  REQUIRE(table().launch(nullptr, step, tensors, 13) == QUIRE_OK);
  CHECK(extend.seen->bytes == other.seen->bytes);
  CHECK(extend.pool->bytes == other.pool->bytes);
  CHECK(extend.pool->data<float>()[8] == 50);
  CHECK(decode.output->bytes == again.output->bytes);
  CHECK(decode.state->bytes == again.state->bytes);
  CHECK(table().step_free(step) == QUIRE_OK);

  const quire_mask_args mask = {sizeof mask, &other.index, &other.seen->tensor};
  const quire_call lacking = {sizeof lacking, QUIRE_OP_MASK, &mask};
  CHECK(table().capture(host, &lacking, 1, &step) == QUIRE_UNSUPPORTED);
  CHECK(step == nullptr);
  REQUIRE(table().capture(host, nullptr, 0, &step) == QUIRE_OK);  // a step of nothing
  CHECK(table().launch(nullptr, step, nullptr, 0) == QUIRE_OK);
  CHECK(table().step_free(step) == QUIRE_OK);
}

TEST_CASE("template: a newer host's longer calls and structs") {
  struct LongerCall {
    quire_call call;
    std::int64_t news[2];
  };
  ExtendCall extend;
  const quire_positions_args positions = {sizeof positions, &extend.index, &extend.pos->tensor};
  const LongerCall calls[] = {{{sizeof(LongerCall), QUIRE_OP_EXTEND, &extend.args}, {1, 2}}, {{sizeof(LongerCall), QUIRE_OP_POSITIONS, &positions}, {3, 4}}};
  quire_step* step = nullptr;
  REQUIRE(table().capture(host, &calls[0].call, 2, &step) == QUIRE_OK);
  CHECK(table().launch(nullptr, step, nullptr, 5) == QUIRE_INVALID_ARGUMENT);
  CHECK(last_error() == "tensors: 5; allowed: the step's 12");
  CHECK(table().step_free(step) == QUIRE_OK);
}

// A2, E6: numbers that nobody has checked. Beside the reference where the index is tabled; the sandbox has guard zones.
TEST_CASE("template: bad numbers harm nothing and nobody") {
  const std::int64_t bad[] = {0, 1, 2, 3, 5, 6, 7, -1, -2, 1 << 20, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max(),
                              std::numeric_limits<std::int64_t>::max() - 1, std::numeric_limits<std::int64_t>::min()};
  std::mt19937 random(1);
  const auto spoil = [&](Owned& tensor) {
    for (std::size_t i = 0; i < tensor.bytes.size() / 8; ++i) tensor.data<std::int64_t>()[i] = bad[random() % std::size(bad)];
  };
  for (int round = 0; round < 3000; ++round) {
    ExtendCall extend;
    auto chosen = integers({2, 2, 3}, {0}), slots = integers({2, 2}, {0});
    auto sees = owned<std::uint8_t>(QUIRE_BOOL, {2, 2, 2}, {1, 0, 1, 1});
    auto choices = floats({2, 2, 3, 2}, {9}), drafted = floats({2, 5, 2}, {9}), in_blocks = floats({2, 2, 2}, {9});
    for (Owned* numbers : {extend.pos.get(), extend.table.get(), extend.row.get(), extend.blocks.get(), chosen.get(), slots.get()}) spoil(*numbers);
    extend.index.window = round % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 4) + 1;
    switch (round % 4) {
      case 0: break;
      case 1:
        extend.index.columns = &chosen->tensor;
        extend.args.seen = &choices->tensor;
        break;
      case 2:
        extend.index.slots = &slots->tensor;
        extend.index.sees = &sees->tensor;
        extend.args.seen = &drafted->tensor;
        break;
      default:
        extend.index.reads = 2;
        extend.args.seen = &in_blocks->tensor;
    }
    auto places = integers({2, 2}, {9});
    const quire_positions_args positions = {sizeof positions, &extend.index, &places->tensor};
    auto next = integers({2, 1}, {9});
    const quire_advance_args advance = {sizeof advance, &extend.index, &next->tensor};
    DecodeCall decode;
    auto targets = integers({2}, {0});
    const auto in_pool = [](std::int64_t number) { return number >= 0 && number < 3; };
    for (bool crossed = true; crossed;) {  // E8: what one sequence writes, no other reads or writes
      spoil(*decode.rows);
      spoil(*targets);
      const std::int64_t *read = decode.rows->data<std::int64_t>(), *write = targets->data<std::int64_t>();
      crossed = false;
      for (int b = 0; b < 2; ++b) crossed |= in_pool(write[b]) && in_pool(read[b]) && (write[b] == write[1 - b] || write[b] == read[1 - b]);
    }
    decode.args.output_state_indices = &targets->tensor;
    for (const auto& [op, args] : {std::pair<quire_op, const void*>{QUIRE_OP_EXTEND, &extend.args},
                                   {QUIRE_OP_POSITIONS, &positions},
                                   {QUIRE_OP_ADVANCE, &advance},
                                   {QUIRE_OP_GDN_DECODE, &decode.args}}) {
      const quire::conformance::CallVerdict verdict = quire::conformance::judge_call(candidate(), quire::backend("reference"), op, args);
      CHECK_MESSAGE(verdict.status == quire::conformance::CallVerdict::Status::passed, round, " ", verdict.failure.message);
    }
    // Whole indices are made by the library, but a step may be launched with any positions.
    ExtendCall whole;
    spoil(*whole.pos);
    auto values_seen = floats({2, 1 + round % 2, 2}, {9});
    whole.index = {sizeof whole.index, QUIRE_INDEX_WHOLE, &whole.pos->tensor, nullptr, nullptr, 0, nullptr, 2 - round % 2, 0, nullptr, nullptr, nullptr};
    whole.args.pool = nullptr;
    whole.args.seen = &values_seen->tensor;
    if (round % 3 == 0) {
      whole.index.columns = &chosen->tensor;
      whole.args.seen = &choices->tensor;
    }
    CHECK(run(QUIRE_OP_EXTEND, &whole.args) == QUIRE_OK);
  }
}

TEST_CASE("template: the suite's cases") {
  quire::conformance::RunOptions options;
  options.candidate = &candidate();
  options.reference = &quire::backend("reference");
  options.count = 1000;
  const quire::conformance::RunReport report = quire::conformance::run_cases(options);
  for (const auto& failure : report.failures) FAIL_CHECK(failure.line, ": ", failure.failure.message);
  CHECK(report.total().failed == 0);
  CHECK(report.families.at("extend").unsupported == 0);
  CHECK(report.families.at("gdn_decode").unsupported < report.families.at("gdn_decode").calls);
  CHECK(report.laws.contains("C6"));
  CHECK(report.laws.contains("E3"));
  for (const auto& [reason, count] : report.unsupported) {
    CHECK_MESSAGE((reason.find("is not written") != std::string::npos || reason.find("only f32 and bf16") != std::string::npos), reason, " ", count);
  }
}
