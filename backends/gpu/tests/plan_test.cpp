// Planning: launches, workspaces, reasons, and the folding of rows. No tensor here has memory that could be read.
#include "abi_tensors.h"

#include "gpu/kernels.h"
#include "gpu/plan.h"
#include "gpu/views.h"

#include <doctest/doctest.h>

#include <string>

using quire::Call;
using quire::gpu::Launch;
using quire::gpu::RowShape;
using quire::gpu::test::AbiTensors;
using quire::gpu::test::nowhere;

namespace {

constexpr std::int64_t shared_bytes = 48 << 10;

quire_extend_args extend_args(AbiTensors& make, const quire_tensor* values, const quire_tensor* pool, const quire_tensor* seen) {
  return {sizeof(quire_extend_args), make.index(values->shape[0], values->shape[1], 2, seen->shape[1]), values, pool, seen};
}

quire_attend_args attend_args(AbiTensors& make, std::int64_t size, std::int64_t value_size, std::int64_t batch = 2, std::int64_t seq = 3) {
  quire_attend_args args{};
  args.struct_size = sizeof args;
  args.index = make.index(batch, seq, batch, 8);
  args.q = make.dense(QUIRE_F16, {batch, seq, 4, size});
  args.k = make.dense(QUIRE_F16, {batch, seq, 2, size});
  args.v = make.dense(QUIRE_F16, {batch, seq, 2, value_size});
  args.k_pool = make.dense(QUIRE_F16, {16, 2, size});
  args.v_pool = make.dense(QUIRE_F16, {16, 2, value_size});
  args.out = make.dense(QUIRE_F16, {batch, seq, 4, value_size});
  args.lse = make.dense(QUIRE_F32, {batch, seq, 4});
  args.scale = 1;
  return args;
}

quire_gdn_verify_args verify_args(AbiTensors& make, std::int64_t batch, std::int64_t seq, std::int64_t heads, std::int64_t keys,
                                  std::int64_t values) {
  quire_gdn_verify_args args{};
  args.struct_size = sizeof args;
  args.index = make.index(batch, seq, batch, 8, true);
  args.q = make.dense(QUIRE_F32, {batch, seq, heads, keys});
  args.k = make.dense(QUIRE_F32, {batch, seq, heads, keys});
  args.v = make.dense(QUIRE_F32, {batch, seq, heads, values});
  args.state_pool = make.dense(QUIRE_F32, {4, heads, values, keys});
  args.state_indices = make.dense(QUIRE_I32, {batch});
  args.state_slots = make.dense(QUIRE_I32, {batch, seq});
  args.output = make.dense(QUIRE_F32, {batch, seq, heads, values});
  args.scale = 1;
  return args;
}

quire_gdn_decode_args decode_args(AbiTensors& make, std::int64_t batch, std::int64_t keys) {
  quire_gdn_decode_args args{};
  args.struct_size = sizeof args;
  args.q = make.dense(QUIRE_BF16, {batch, 1, 2, keys});
  args.k = make.dense(QUIRE_BF16, {batch, 1, 2, keys});
  args.v = make.dense(QUIRE_BF16, {batch, 1, 2, 5});
  args.state_pool = make.dense(QUIRE_BF16, {4, 2, 5, keys});
  args.state_indices = make.dense(QUIRE_I32, {batch});
  args.output = make.dense(QUIRE_BF16, {batch, 1, 2, 5});
  args.scale = 1;
  return args;
}

std::string reason_of(quire_op op, const void* args) { return quire::gpu::unsupported_reason(Call(op, args), shared_bytes); }

void check_launches(const std::vector<Launch>& launches) {
  for (const Launch& launch : launches) {
    CAPTURE(launch.kernel.name);
    CHECK(launch.kernel.entry != nullptr);
    CHECK(launch.blocks > 0);
    CHECK(launch.threads % 64 == 0);
    CHECK(launch.threads <= 256);
    CHECK(launch.shared_bytes <= shared_bytes);
    CHECK(launch.parameter_bytes <= Launch::most_bytes);
  }
}

std::vector<std::string> names_of(const std::vector<Launch>& launches) {
  std::vector<std::string> names;
  for (const Launch& launch : launches) names.emplace_back(launch.kernel.name);
  return names;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("every store of a call stands before every read, in a kernel of its own (C2)") {
  AbiTensors make;
  const auto* values = make.dense(QUIRE_F32, {2, 3, 7});
  const auto extend = extend_args(make, values, make.dense(QUIRE_F32, {9, 7}), make.dense(QUIRE_F32, {2, 8, 7}));
  const auto launches = quire::gpu::plan(Call(QUIRE_OP_EXTEND, &extend), nullptr);
  check_launches(launches);
  CHECK(names_of(launches) == Names{"store_rows", "gather_rows"});
  CHECK(launches[0].blocks == 6);   // B S
  CHECK(launches[1].blocks == 16);  // B C

  const auto attend = attend_args(make, 64, 300);
  const auto attending = quire::gpu::plan(Call(QUIRE_OP_ATTEND, &attend), nullptr);
  check_launches(attending);
  CHECK(names_of(attending) == Names{"store_rows", "store_rows", "attend"});
  CHECK(attending[2].blocks == 2 * 3 * 4 * 2);  // B S Hq, and 300 values take two blocks
}

TEST_CASE("nothing is stored on a whole index (C7), and nothing is launched for nothing") {
  AbiTensors make;
  const auto* values = make.dense(QUIRE_I8, {2, 3, 7});
  auto args = extend_args(make, values, make.dense(QUIRE_I8, {9, 7}), make.dense(QUIRE_I8, {2, 3, 7}));
  quire_index whole = *args.index;
  whole.kind = QUIRE_INDEX_WHOLE;
  whole.table = nullptr;
  args.index = &whole;
  CHECK(names_of(quire::gpu::plan(Call(QUIRE_OP_EXTEND, &args), nullptr)) == Names{"gather_rows"});

  const auto empty_rows =
      extend_args(make, make.dense(QUIRE_F32, {2, 3, 0}), make.dense(QUIRE_F32, {9, 0}), make.dense(QUIRE_F32, {2, 8, 0}));
  CHECK(quire::gpu::plan(Call(QUIRE_OP_EXTEND, &empty_rows), nullptr).empty());
  const auto no_sequences = decode_args(make, 0, 8);
  CHECK(quire::gpu::plan(Call(QUIRE_OP_GDN_DECODE, &no_sequences), nullptr).empty());
}

TEST_CASE("verify's workspace: order and parents of each token, then every token's state in float32") {
  AbiTensors make;
  const auto args = verify_args(make, 3, 5, 2, 7, 11);
  CHECK(quire::gpu::workspace_bytes(Call(QUIRE_OP_GDN_VERIFY, &args)) == 3 * 5 * 8 * 2 + 3 * 5 * 2 * 11 * 7 * 4);
  const auto launches = quire::gpu::plan(Call(QUIRE_OP_GDN_VERIFY, &args), nowhere());
  check_launches(launches);
  CHECK(names_of(launches) == Names{"draft_tree", "gdn_verify"});
  const auto decode = decode_args(make, 3, 8);
  CHECK(quire::gpu::workspace_bytes(Call(QUIRE_OP_GDN_DECODE, &decode)) == 0);
}

TEST_CASE("work that 64 bits do not count is turned down") {
  AbiTensors make;
  const std::int64_t huge = std::int64_t{1} << 31;
  const auto verify = verify_args(make, huge, huge, 1, 8, 8);
  CHECK(reason_of(QUIRE_OP_GDN_VERIFY, &verify) == "more work than 64-bit numbers count");
  const auto attend = attend_args(make, 8, 8, huge, huge);
  CHECK(reason_of(QUIRE_OP_ATTEND, &attend) == "more work than 64-bit numbers count");
  const quire_mask_args mask{sizeof mask, make.index(huge, huge, 2, huge), make.dense(QUIRE_BOOL, {huge, huge, huge})};
  CHECK(reason_of(QUIRE_OP_MASK, &mask) == "more work than 64-bit numbers count");
}

TEST_CASE("heads too large are turned down, the largest are not") {
  AbiTensors make;
  const auto fits = decode_args(make, 3, 256), does_not = decode_args(make, 3, 257);
  CHECK(reason_of(QUIRE_OP_GDN_DECODE, &fits).empty());
  CHECK(reason_of(QUIRE_OP_GDN_DECODE, &does_not) == "q: keys of 257 elements; a warp holds up to 256");
  const std::int64_t most = (shared_bytes - quire::gpu::shared_of_attend(0)) / 4;
  CHECK(most >= 8192);
  const auto attend_fits = attend_args(make, most, 8), attend_does_not = attend_args(make, most + 1, 8);
  CHECK(reason_of(QUIRE_OP_ATTEND, &attend_fits).empty());
  check_launches(quire::gpu::plan(Call(QUIRE_OP_ATTEND, &attend_fits), nullptr));
  CHECK(reason_of(QUIRE_OP_ATTEND, &attend_does_not).find("fit in a block's shared memory") != std::string::npos);
}

TEST_CASE("rows of more than six axes that do not fold are turned down") {
  AbiTensors make;
  const auto padded = [&](std::vector<std::int64_t> shape, std::size_t lead) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides[axis] = step;
      step *= shape[axis] + (axis > lead ? 1 : 0);
    }
    return make.with_strides(QUIRE_F32, std::move(shape), std::move(strides));
  };
  const auto* pool6 = make.dense(QUIRE_F32, {9, 2, 2, 2, 2, 2, 2});
  const auto* pool7 = make.dense(QUIRE_F32, {9, 2, 2, 2, 2, 2, 2, 2});
  const auto six = extend_args(make, padded({2, 3, 2, 2, 2, 2, 2, 2}, 1), pool6, make.dense(QUIRE_F32, {2, 8, 2, 2, 2, 2, 2, 2}));
  CHECK(reason_of(QUIRE_OP_EXTEND, &six).empty());
  const auto seven = extend_args(make, padded({2, 3, 2, 2, 2, 2, 2, 2, 2}, 1), pool7, make.dense(QUIRE_F32, {2, 8, 2, 2, 2, 2, 2, 2, 2}));
  CHECK(reason_of(QUIRE_OP_EXTEND, &seven) == "values to seen: rows of more than 6 axes that do not fold together");
  const auto dense =
      extend_args(make, make.dense(QUIRE_F32, {2, 3, 2, 2, 2, 2, 2, 2, 2}), pool7, make.dense(QUIRE_F32, {2, 8, 2, 2, 2, 2, 2, 2, 2}));
  CHECK(reason_of(QUIRE_OP_EXTEND, &dense).empty());
}

TEST_CASE("rows fold, and are copied in the widest units in which every row begins and steps evenly") {
  AbiTensors make;
  const auto shape_of = [](const quire_tensor* from, const quire_tensor* to) {
    const auto row = quire::gpu::row_shape(*from, 2, *to, 1);
    REQUIRE(row);
    return *row;
  };
  const auto* pool = make.dense(QUIRE_F16, {9, 4, 8});
  RowShape row = shape_of(make.dense(QUIRE_F16, {2, 3, 4, 8}), pool);
  CHECK(row.axes == 1);
  CHECK(row.unit_bytes == 8);
  CHECK(row.units == 8);  // 4 x 8 elements of 2 bytes

  // A memory that begins at 4 bytes, at an odd number of elements.
  CHECK(shape_of(make.dense(QUIRE_F16, {2, 3, 4, 8}, nowhere(4)), pool).unit_bytes == 4);
  CHECK(shape_of(make.dense(QUIRE_F16, {2, 3, 4, 8}, nowhere(2)), pool).unit_bytes == 2);
  // Rows of a padded stride begin unevenly.
  CHECK(shape_of(make.with_strides(QUIRE_F16, {2, 3, 4, 8}, {99, 33, 8, 1}), pool).unit_bytes == 2);
  // Heads apart: two axes, each head's 8 elements in two units of 8 bytes.
  row = shape_of(make.with_strides(QUIRE_F16, {2, 3, 4, 8}, {192, 64, 16, 1}), pool);
  CHECK(row.axes == 2);
  CHECK(row.unit_bytes == 8);
  CHECK(row.sizes[0] == 4);
  CHECK(row.sizes[1] == 2);
  CHECK(row.from_bytes[0] == 32);
  CHECK(row.to_bytes[0] == 16);
  // Elements are never cut, and never joined where they lie apart.
  CHECK(shape_of(make.dense(QUIRE_F64, {2, 3, 5}), make.dense(QUIRE_F64, {9, 5})).unit_bytes == 8);
  row = shape_of(make.with_strides(QUIRE_F16, {2, 3, 4, 1}, {24, 8, 2, 1}), make.dense(QUIRE_F16, {9, 4, 1}));
  CHECK(row.unit_bytes == 2);
  CHECK(row.units == 4);
  CHECK(row.from_bytes[0] == 4);
  // A row of one element.
  row = shape_of(make.dense(QUIRE_U8, {2, 3}), make.dense(QUIRE_U8, {9}));
  CHECK(row.units == 1);
  CHECK(row.unit_bytes == 1);
}

TEST_CASE("other memory changes a plan's parameters and nothing else") {
  AbiTensors make;
  const auto first = verify_args(make, 2, 3, 1, 8, 8);
  Call call(QUIRE_OP_GDN_VERIFY, &first);
  const auto before = quire::gpu::plan(call, nowhere());
  for (const quire::CallTensor& entry : call.tensors()) entry.tensor->data = nowhere(4100);
  const auto after = quire::gpu::plan(call, nowhere());
  REQUIRE(before.size() == after.size());
  for (std::size_t n = 0; n < before.size(); ++n) {
    CHECK(before[n].kernel.entry == after[n].kernel.entry);
    CHECK(before[n].blocks == after[n].blocks);
    CHECK(before[n].shared_bytes == after[n].shared_bytes);
    CHECK(before[n].parameter_bytes == after[n].parameter_bytes);
    CHECK(std::memcmp(before[n].parameters, after[n].parameters, before[n].parameter_bytes) != 0);
  }
  for (const quire::CallTensor& entry : call.tensors()) entry.tensor->data = nowhere();
  const auto again = quire::gpu::plan(call, nowhere());
  // No struct has padding: equal parameters are equal bytes.
  for (std::size_t n = 0; n < before.size(); ++n)
    CHECK(std::memcmp(before[n].parameters, again[n].parameters, before[n].parameter_bytes) == 0);
}
