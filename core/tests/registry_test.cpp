// The registry, the reference's table, and what the environment chooses.
#include <quire/registry.h>

#include "backend_header_test.h"
#include "core_test_helpers.h"

#include <doctest/doctest.h>

#include <array>
#include <thread>

using namespace quire;
using namespace quire::test;

namespace {

// Enough work that loops are shared out, and widths that no vector divides.
std::string results_as_bytes() {
  const Index index = Index::make(i64({20, 21, 22, 23, 30, 31, 32, 33}, {2, 4}), fill(Tensor::empty(DType::i64, {2, 40}), 5, 0, 90));
  Tensor pool = filled(DType::f32, {90, 2, 37}, 1);
  const Attended attended = attend(index, filled(DType::f32, {2, 4, 4, 37}, 2, -3, 3), filled(DType::f32, {2, 4, 2, 37}, 3),
                                   filled(DType::f32, {2, 4, 2, 37}, 4), pool, pool, {{}, 5.0, filled(DType::f32, {4}, 6)});
  GdnPrefill prefill;
  prefill.inputs = {filled(DType::bf16, {70, 2, 29}, 7), filled(DType::bf16, {70, 2, 29}, 8), filled(DType::bf16, {70, 4, 31}, 9),
                    filled(DType::f32, {70, 4}, 10, 0.8, 1), filled(DType::f32, {70, 4}, 11, 0, 1), {}, true};
  prefill.cu_seqlens = i32({0, 33, 70}, {3});
  prefill.output_final_state = true;
  const GdnPrefilled prefilled = gdn_prefill(std::move(prefill));
  return bytes(attended.out) + bytes(attended.lse) + bytes(attended.k_pool) + bytes(prefilled.output) + bytes(prefilled.output_state);
}

quire_tensor on_device(const Tensor& tensor, std::int32_t type) {
  quire_tensor view = tensor.view();
  view.device = {type, 0};
  return view;
}

}  // namespace

TEST_CASE("backends: the reference is there and is the default") {
  const Environment unset("QUIRE_BACKEND", nullptr);
  REQUIRE_FALSE(backends().empty());
  const BackendStatus& first = backends().front();
  CHECK(first.name == "reference");
  CHECK(first.available);
  CHECK(first.reason.empty());
  CHECK(first.path == "(built in)");
  REQUIRE(first.backend != nullptr);
  CHECK(first.backend == &backend("reference"));
  CHECK(&default_backend() == &backend("reference"));
  const Backend& reference = backend("reference");
  CHECK(std::string(reference.name()) == "reference");
  CHECK_FALSE(std::string(reference.version()).empty());
  CHECK_FALSE(std::string(reference.description()).empty());
  CHECK(reference.path() == "(built in)");
  CHECK(reference.info().struct_size == sizeof(quire_backend_info));
  CHECK(reference.info().rank >= 0);
  CHECK(reference.info().dtypes == (std::uint64_t{1} << QUIRE_DTYPE_COUNT) - 1);
  CHECK(reference.info().float_dtypes == ((1u << QUIRE_F16) | (1u << QUIRE_BF16) | (1u << QUIRE_F32) | (1u << QUIRE_F64)));
  CHECK(reference.info().state_dtypes ==
        ((1u << QUIRE_F16) | (1u << QUIRE_BF16) | (1u << QUIRE_F32) | (1u << QUIRE_F8_E4M3FN) | (1u << QUIRE_F8_E5M2)));
  CHECK(reference.table().abi_version == QUIRE_ABI_VERSION);
  CHECK(reference.table().semantics_version == QUIRE_SEMANTICS_VERSION);
  const std::vector<quire_device_info> devices = reference.devices();
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].struct_size == sizeof(quire_device_info));
  CHECK(devices[0].device.type == QUIRE_DEVICE_CPU);
  CHECK(devices[0].memory_bytes > 0);
  quire_device_info other{};
  other.struct_size = sizeof other;
  CHECK(reference.table().device_info(1, &other) != QUIRE_OK);
}

TEST_CASE("an unknown backend is named with the known ones; QUIRE_BACKEND chooses") {
  check_rejected([] { (void)backend("cuda9"); }, "backend", "cuda9", "reference");
  check_rejected([] { (void)backend(""); }, "backend", "\"\"", "reference");
  {
    const Environment chosen("QUIRE_BACKEND", "reference");
    CHECK(std::string(default_backend().name()) == "reference");
    CHECK(whole_numbers(positions(Index::whole(1, 2))) == Integers{0, 1});
  }
  {
    const Environment chosen("QUIRE_BACKEND", "refrence");
    check_rejected([] { (void)default_backend(); }, "backend", "refrence", "reference");
    check_rejected([] { (void)positions(Index::whole(1, 2)); }, "backend", "refrence", "reference");
    // A backend that is named in the call is used whatever the environment says.
    CHECK(whole_numbers(positions(Index::whole(1, 2), {&backend("reference"), nullptr})) == Integers{0, 1});
  }
  const Environment chosen("QUIRE_BACKEND", "");
  CHECK(std::string(default_backend().name()) == "reference");
}

TEST_CASE("ops have names") {
  const std::array<std::string, QUIRE_OP_COUNT> names = {"positions",   "mask",       "advance",    "extend",            "attend",
                                                         "gdn_prefill", "gdn_decode", "gdn_verify", "gdn_prefill_slots", "gdn_decode_slots"};
  for (quire_op op = 0; op < QUIRE_OP_COUNT; ++op) CHECK(std::string(op_name(op)) == names[static_cast<std::size_t>(op)]);
  CHECK(std::string(op_name(-1)) == "unknown op");
  CHECK(std::string(op_name(QUIRE_OP_COUNT)) == "unknown op");
}

TEST_CASE("the reference's contract: float64 and exact copies") {
  const Backend& reference = backend("reference");
  for (quire_op op = 0; op < QUIRE_OP_COUNT; ++op) {
    CAPTURE(op);
    const quire_contract contract = reference.contract(op, DType::bf16, DType::f32);
    const bool computes = op == QUIRE_OP_ATTEND || op == QUIRE_OP_GDN_PREFILL || op == QUIRE_OP_GDN_DECODE || op == QUIRE_OP_GDN_VERIFY;
    CHECK(contract.struct_size == sizeof contract);
    CHECK(contract.u_product == (computes ? 0x1p-53 : 0));
    CHECK(contract.u_accumulate == (computes ? 0x1p-53 : 0));
    CHECK(contract.u_store == 0);
    CHECK(contract.u_exp <= 0x1p-52);
    CHECK(contract.decay_from_log_sums == 0);
    CHECK(contract.chunk_length == 1);
    CHECK(contract.batch_invariant == 1);
  }
  const Caught unknown = caught([&] { (void)reference.contract(QUIRE_OP_COUNT, DType::f32, DType::f32); });
  REQUIRE(unknown.raised);
  CHECK(unknown.code == ErrorCode::unsupported);
}

TEST_CASE("supports refuses what lies on a device, and run then computes nothing") {
  const Backend& reference = backend("reference");
  const Tensor pos = i64({0}, {1, 1});
  const Tensor values = f32({5}, {1, 1, 1});
  const Tensor pool = f32({1, 2}, {2, 1});
  const Tensor seen = f32({9}, {1, 1, 1});
  const Index index = Index::make(pos, pos);
  const IndexAbi abi(index);
  const quire_tensor values_view = values.view(), pool_view = pool.view(), seen_view = seen.view();
  const quire_extend_args good{sizeof good, abi.get(), &values_view, &pool_view, &seen_view};
  CHECK(reference.unsupported_reason(QUIRE_OP_EXTEND, &good).empty());
  for (const std::int32_t type : {QUIRE_DEVICE_CUDA, QUIRE_DEVICE_ROCM}) {
    const quire_tensor far_values = on_device(values, type), far_pool = on_device(pool, type), far_seen = on_device(seen, type);
    quire_index far_index = *abi.get();
    const quire_tensor far_pos = on_device(pos, type);
    far_index.table = &far_pos;
    const quire_extend_args bad[] = {{sizeof good, abi.get(), &far_values, &pool_view, &seen_view},
                                     {sizeof good, abi.get(), &values_view, &far_pool, &seen_view},
                                     {sizeof good, abi.get(), &values_view, &pool_view, &far_seen},
                                     {sizeof good, &far_index, &values_view, &pool_view, &seen_view}};
    for (const quire_extend_args& args : bad) {
      CHECK_FALSE(reference.unsupported_reason(QUIRE_OP_EXTEND, &args).empty());
      CHECK(reference.table().run(nullptr, QUIRE_OP_EXTEND, &args, nullptr, 0) == QUIRE_UNSUPPORTED);
      const Caught error = caught([&] { reference.run(nullptr, QUIRE_OP_EXTEND, &args); });
      REQUIRE(error.raised);
      CHECK(error.code == ErrorCode::unsupported);
      CHECK(contains(error.message, "reference"));
    }
  }
  CHECK(numbers(pool) == Numbers{1, 2});
  CHECK(numbers(seen) == Numbers{9});
  CHECK_FALSE(reference.unsupported_reason(QUIRE_OP_COUNT, &good).empty());
  CHECK_FALSE(reference.unsupported_reason(-1, &good).empty());
}

TEST_CASE("an op takes the tensors of one device: another's index is the argument at fault") {
  const Tensor memory = Tensor::zeros(DType::i64, {1, 1});
  const Tensor far = Tensor::borrow(memory.raw(), DType::i64, {1, 1}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  const Index index = Index::make(far, far);
  const Tensor four = f32({1}, {1, 1, 1, 1});
  const Tensor three = f32({1}, {1, 1, 1});
  check_rejected([&] { (void)extend(index, three, f32({1}, {1, 1})); }, "index", "the host", "device type 2 number 0");
  check_rejected([&] { (void)attend(index, four, four, four, three, three); }, "index", "the host", "device type 2 number 0");
  // All of a call on a device that no backend here has: unsupported, and nothing is read there.
  const Tensor far_values = Tensor::borrow(three.raw(), DType::f32, {1, 1, 1}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  const Tensor far_pool = Tensor::borrow(four.raw(), DType::f32, {1, 1}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  for (const Caught& error : {caught([&] { (void)extend(index, far_values, Pool::in_place(far_pool)); }), caught([&] { (void)mask(index); }),
                              caught([&] { (void)positions(index); })}) {
    REQUIRE(error.raised);
    CHECK(error.code == ErrorCode::unsupported);
  }
}

TEST_CASE("gdn_verify takes the tensors of one device: another's index is the argument at fault") {
  const Tensor memory = Tensor::zeros(DType::i64, {1, 1});
  const Tensor flags = bools({1}, {1, 1, 1});
  const Tensor far = Tensor::borrow(memory.raw(), DType::i64, {1, 1}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  const Tensor far_sees = Tensor::borrow(flags.raw(), DType::boolean, {1, 1, 1}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  GdnInputs inputs;
  inputs.q = inputs.k = inputs.v = f32({1}, {1, 1, 1, 1});
  const Index index = Index::make(far, far).draft(far, far_sees);
  check_rejected([&] { (void)gdn_verify(index, inputs, f32({1}, {1, 1, 1, 1}), i32({0}, {1}), i32({0}, {1, 1})); }, "index", "the host", "device type 2 number 0");
}

TEST_CASE("QUIRE_THREADS: the same bits for any number, a clear error for no number") {
  const std::string expected = results_as_bytes();
  for (const char* good : {"1", "2", "3", "7", ""}) {
    CAPTURE(good);
    const Environment threads("QUIRE_THREADS", good);
    CHECK(results_as_bytes() == expected);
  }
  for (const char* bad : {"0", "-2", "many", "2x", "4097", "1.5", "99999999999999999999"}) {
    CAPTURE(bad);
    const Environment threads("QUIRE_THREADS", bad);
    const Caught error = caught([] { (void)results_as_bytes(); });
    REQUIRE(error.raised);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.argument == "QUIRE_THREADS");
    CHECK(contains(error.message, std::string("QUIRE_THREADS: \"") + bad + "\"; allowed: 1 to 4096"));
    // Every op says so, whether or not it would share out a loop.
    CHECK(caught([] { (void)positions(Index::whole(1, 1)); }).argument == "QUIRE_THREADS");
  }
  CHECK(results_as_bytes() == expected);
}

TEST_CASE("QUIRE_ISA: the same bits for any set of this processor, a clear error for another") {
  const std::string expected = results_as_bytes();
  std::string names;
  {
    const Environment isa("QUIRE_ISA", "mmx");
    const Caught error = caught([] { (void)results_as_bytes(); });
    REQUIRE(error.raised);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.argument == "QUIRE_ISA");
    CHECK(contains(error.message, "QUIRE_ISA: \"mmx\"; allowed: "));
    CHECK(caught([] { (void)positions(Index::whole(1, 1)); }).argument == "QUIRE_ISA");
    names = error.message.substr(error.message.find("allowed: ") + 9);
  }
  CHECK(contains(names, "scalar"));
  int tried = 0;
  for (const char* set : {"scalar", "sse2", "avx2", "avx512", "neon", ""}) {
    if (!contains(names, set)) continue;
    CAPTURE(set);
    const Environment isa("QUIRE_ISA", set);
    CHECK(results_as_bytes() == expected);
    ++tried;
  }
  CHECK(tried >= 3);
}

TEST_CASE("a failing environment leaves pools that were given up as they were") {
  const Index index = rows(3, {1, 1});
  const Tensor pool = filled(DType::f32, {6, 1, 4}, 1);
  const std::string before = bytes(pool);
  const Tensor q = filled(DType::f32, {2, 1, 1, 4}, 2);
  for (const auto& [name, value] : {std::pair{"QUIRE_THREADS", "none"}, {"QUIRE_ISA", "none"}}) {
    CAPTURE(name);
    const Environment bad(name, value);
    CHECK(caught([&] { (void)extend(index, q, Pool::in_place(pool)); }).raised);
    CHECK(bytes(pool) == before);
    const Tensor v_pool = filled(DType::f32, {6, 1, 4}, 3);
    const std::string v_before = bytes(v_pool);
    CHECK(caught([&] { (void)attend(index, q, q, q, Pool::in_place(pool), Pool::in_place(v_pool)); }).raised);
    CHECK(bytes(pool) == before);
    CHECK(bytes(v_pool) == v_before);
  }
}

TEST_CASE("a description lives as long as the backend, whatever thread asked for it") {
  const Backend& reference = backend("reference");
  const std::string here(reference.description());
  quire_backend_info info{};
  info.struct_size = sizeof info;
  std::thread([&] { CHECK(reference.table().describe(&info) == QUIRE_OK); }).join();
  const std::string noise(200, 'x');  // takes the place of what that thread freed
  CHECK(std::string(info.description) == here);
  CHECK(noise.size() == 200);
}

TEST_CASE("describe writes no field beyond the caller's struct_size") {
  quire_backend_info info;
  std::memset(&info, 0x5a, sizeof info);
  info.struct_size = offsetof(quire_backend_info, dtypes);
  CHECK(backend("reference").table().describe(&info) == QUIRE_OK);
  CHECK(std::string(info.name) == "reference");
  CHECK(info.dtypes == 0x5a5a5a5a5a5a5a5au);
  CHECK(info.build == 0x5a5a5a5au);
}

TEST_CASE("a table is handed out for a range of versions, else a reason") {
  const quire_host host{sizeof host, QUIRE_ABI_VERSION, "test"};
  for (const quire_backend_query_fn query : {detail::built_in_backends().front(), static_cast<quire_backend_query_fn>(quire_header_query)}) {
    const char* reason = nullptr;
    CHECK(query(&host, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION + 5, &reason) != nullptr);
    CHECK(reason == nullptr);
    CHECK(query(&host, QUIRE_ABI_VERSION + 1, QUIRE_ABI_VERSION + 5, &reason) == nullptr);
    REQUIRE(reason != nullptr);
    CHECK(contains(reason, "version"));
  }
}

TEST_CASE("the header is C11: C and C++ agree, and C can call every op and write a backend") {
  std::array<std::size_t, 32> sizes{};
  const int count = quire_header_sizes(sizes.data(), 32);
  const std::vector<std::size_t> expected = {
      sizeof(quire_device),       sizeof(quire_tensor),       sizeof(quire_block_table),     sizeof(quire_index),          sizeof(quire_positions_args),
      sizeof(quire_mask_args),    sizeof(quire_advance_args), sizeof(quire_extend_args),     sizeof(quire_attend_args),    sizeof(quire_gdn_prefill_args),
      sizeof(quire_gdn_decode_args), sizeof(quire_gdn_verify_args), sizeof(quire_gdn_slots_args), sizeof(quire_contract),  sizeof(quire_backend_info),
      sizeof(quire_device_info),  sizeof(quire_call),         sizeof(quire_backend_table),   sizeof(quire_host)};
  CHECK(std::vector<std::size_t>(sizes.begin(), sizes.begin() + count) == expected);
  const char* failure = quire_header_run(&backend("reference").table());
  CHECK_MESSAGE(failure == nullptr, (failure != nullptr ? failure : ""));

  const quire_host host{sizeof host, QUIRE_ABI_VERSION, "test"};
  const char* reason = nullptr;
  const quire_backend_table* table = quire_header_query(&host, QUIRE_ABI_VERSION, QUIRE_ABI_VERSION, &reason);
  REQUIRE(table != nullptr);
  const Backend written_in_c(table, "(test)");
  CHECK(std::string(written_in_c.name()) == "written in C");
  CHECK(written_in_c.path() == "(test)");
  CHECK(written_in_c.devices().size() == 1);
  const Caught error = caught([&] { (void)positions(Index::whole(1, 2), {&written_in_c, nullptr}); });
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(contains(error.message, "no op is written yet"));
}
