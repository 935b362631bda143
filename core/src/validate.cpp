// Validation of the pool ops: extend and attend (laws C1, D5).
#include "validate.h"

#include <quire/stream.h>

#include "require.h"

#include <cmath>

namespace quire::validate {

void index_tensors(const Index& index, const Device& device, std::span<const std::pair<std::string_view, const Pool*>> pools) {
  const Index& here = index.on(device);
  const auto each = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (!(tensor.device() == device)) reject("index", "a tensor on " + to_string(tensor.device()), "tensors on the call's device, " + to_string(device));
    for (const auto& [name, pool] : pools) require_apart(*pool, name, tensor, "index");
  };
  each(here.pos());
  each(here.table());
  each(here.row());
  for (const BlockTable& blocks : here.block_tables()) each(blocks.blocks);
  each(here.columns());
  if (here.draft_tokens()) {
    each(here.draft_tokens()->slots);
    each(here.draft_tokens()->sees);
  }
}

void extend(const Index& index, const Tensor& values, const Pool& pool) {
  const Device device = values.defined() ? values.device() : index.device();
  const std::string lead = fmt::format("[{}, {}, ...]", index.batch(), index.seq());
  require_present(values, "values", device, lead);
  if (values.rank() < 2 || values.size(0) != index.batch() || values.size(1) != index.seq()) reject("values", describe(values), lead);
  if (pool.defined()) {
    Shape row(values.shape().begin() + 2, values.shape().end());
    const std::string allowed =
        fmt::format("{} [N{}{}], rows as those of values", name(values.dtype()), row.empty() ? "" : ", ", fmt::join(row, ", "));
    require_present(pool.given(), "pool", device, allowed);
    const Shape& shape = pool.given().shape();
    if (shape.empty() || pool.given().dtype() != values.dtype() || Shape(shape.begin() + 1, shape.end()) != row) {
      reject("pool", describe(pool.given()), allowed);
    }
    require_apart(pool, "pool", values, "values");
  } else if (index.is_tabled()) {
    reject("pool", "nothing", "a pool [N, ...] (only a whole index needs none)");
  }
  const std::pair<std::string_view, const Pool*> pools[] = {{"pool", &pool}};
  index_tensors(index, device, pools);
}

namespace {

void attend_pool(const Index& index, const Pool& pool, std::string_view argument, const Tensor& stored, std::string_view stored_name) {
  if (!pool.defined()) {
    if (index.is_tabled()) reject(argument, "nothing", "a pool [N, Hkv, *] (only a whole index needs none)");
    return;
  }
  const std::string allowed = fmt::format("{} [N, {}, {}], rows as those of {}", name(stored.dtype()), stored.size(2), stored.size(3), stored_name);
  require_present(pool.given(), argument, stored.device(), allowed);
  const Tensor& given = pool.given();
  if (given.rank() != 3 || given.dtype() != stored.dtype() || given.size(1) != stored.size(2) || given.size(2) != stored.size(3)) {
    reject(argument, describe(given), allowed);
  }
}

}  // namespace

void attend(const Index& index, const Tensor& q, const Tensor& k, const Tensor& v, const Pool& k_pool, const Pool& v_pool,
            const AttendOptions& options) {
  const Device device = q.defined() ? q.device() : index.device();
  const auto floating = [&](const Tensor& tensor, std::string_view argument, std::string_view axes) {
    const std::string allowed = fmt::format("f16, bf16, f32 or f64 [{}, {}, {}], no empty axis", index.batch(), index.seq(), axes);
    require_present(tensor, argument, device, allowed);
    if (!is_compute_float(tensor.dtype()) || tensor.rank() != 4 || tensor.size(0) != index.batch() || tensor.size(1) != index.seq() ||
        tensor.size(2) < 1 || tensor.size(3) < 1) {
      reject(argument, describe(tensor), allowed);
    }
  };
  floating(q, "q", "Hq, D");
  floating(k, "k", "Hkv, D");
  floating(v, "v", "Hkv, Dv");
  if (k.size(3) != q.size(3)) reject("k", describe(k), fmt::format("a last axis of {}, as q's", q.size(3)));
  if (v.size(2) != k.size(2)) reject("v", describe(v), fmt::format("{} heads, as k's", k.size(2)));
  if (q.size(2) % k.size(2) != 0) reject("q", fmt::format("{} heads", q.size(2)), fmt::format("a multiple of the {} kv heads", k.size(2)));
  attend_pool(index, k_pool, "k_pool", k, "k");
  attend_pool(index, v_pool, "v_pool", v, "v");
  if (k_pool.defined() && v_pool.defined() && k_pool.given().size(0) != v_pool.given().size(0)) {
    reject("v_pool", fmt::format("{} slots", v_pool.given().size(0)), fmt::format("{}, as k_pool's", k_pool.given().size(0)));
  }
  if (options.scale && !std::isfinite(*options.scale)) reject("scale", fmt::format("{}", *options.scale), "a finite number");
  if (options.softcap && !(std::isfinite(*options.softcap) && *options.softcap > 0)) {
    reject("softcap", fmt::format("{}", *options.softcap), "a finite number above 0");
  }
  if (options.sinks.defined()) {
    require_shape(options.sinks, "sinks", device, {q.size(2)}, "floating");
    if (!is_compute_float(options.sinks.dtype())) reject("sinks", describe(options.sinks), "f16, bf16, f32 or f64");
  }
  const std::pair<std::string_view, const Pool*> pools[] = {{"k_pool", &k_pool}, {"v_pool", &v_pool}};
  for (const auto& [name, pool] : pools) {
    for (const auto& [other_name, other] : {std::pair{"q", &q}, {"k", &k}, {"v", &v}, {"sinks", &options.sinks}}) {
      require_apart(*pool, name, *other, other_name);
    }
  }
  if (k_pool.defined() && k_pool.is_in_place()) require_apart(v_pool, "v_pool", k_pool.given(), "k_pool");
  index_tensors(index, device, pools);
}

}  // namespace quire::validate
