// Mutants about what any backend can get wrong: results not written, inputs written, claims, luck.
#include "specification.h"

#include "../honest/rows.h"

#include <atomic>
#include <cmath>
#include <limits>

namespace quire::conformance {

using honest::Fault;

namespace {

bool is_float_result(const CallTensor& entry) {
  return entry.role == TensorRole::write && is_float(static_cast<DType>(entry.tensor->dtype));
}

// Calls body(dtype, address) for every element of the call's floating results.
template <typename Body>
void for_results(const Call& call, const Body& body) {
  for (const CallTensor& entry : call.tensors()) {
    if (!is_float_result(entry)) continue;
    const auto dtype = static_cast<DType>(entry.tensor->dtype);
    for_elements(*entry.tensor, [&](std::byte* place) { body(dtype, place); });
  }
}

void fill(const Call& call, float value) {
  for_results(call, [value](DType dtype, std::byte* place) { honest::write(dtype, &value, place, 1); });
}
void fill_with_nan(const Call& call, const Scratch&) { fill(call, std::numeric_limits<float>::quiet_NaN()); }
void fill_with_3e25(const Call& call, const Scratch&) { fill(call, 3e25F); }
void fill_with_zero(const Call& call, const Scratch&) {
  for (const CallTensor& entry : call.tensors()) {
    if (entry.role != TensorRole::write) continue;
    for_elements(*entry.tensor, [&](std::byte* place) {
      std::memset(place, 0, static_cast<std::size_t>(size_of(static_cast<DType>(entry.tensor->dtype))));
    });
  }
}

// One element in `rate`, found by its own value so that the same call goes wrong in the same place.
template <std::uint64_t Rate>
void break_one_in(const Call& call, const Scratch&) {
  std::uint64_t n = 0;
  for_results(call, [&n](DType dtype, std::byte* place) {
    const float x = honest::read(dtype, place);
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    std::uint64_t hash = (bits + (n++ << 32)) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9U;
    if ((hash >> 20) % Rate != 0) return;
    const float wrong = x == 0 ? 1.0F : -x;
    honest::write(dtype, &wrong, place, 1);
  });
}

void flip_last_bit_now_and_then(const Call& call, const Scratch&) {
  static std::atomic<std::uint32_t> calls{0};
  if (calls.fetch_add(1) % 3 != 2) return;
  std::byte* last = nullptr;
  for_results(call, [&last](DType, std::byte* place) { last = place; });
  if (last != nullptr) *last ^= std::byte{1};
}

void reverse_every_second_call(honest::Setting& setting) {
  static std::atomic<std::uint32_t> calls{0};
  setting.options.reversed_sums = calls.fetch_add(1) % 2 == 1;
}

// The outputs' memory before the call, then their last rows put back as they were.
void keep_results(Call& call, Scratch& scratch) {
  for (const CallTensor& entry : call.tensors()) {
    if (entry.role == TensorRole::write) scratch.keep(*entry.tensor);
  }
}
void restore_last_rows(const Call& call, const Scratch& scratch) {
  std::size_t n = 0;
  for (const CallTensor& entry : call.tensors()) {
    if (entry.role != TensorRole::write) continue;
    const std::vector<std::byte>& before = scratch.kept[n++];
    if (entry.tensor->shape[0] == 0) continue;
    const std::int64_t offset = (entry.tensor->shape[0] - 1) * entry.tensor->strides[0] * size_of(static_cast<DType>(entry.tensor->dtype));
    if (before.size() > static_cast<std::size_t>(offset)) {
      std::memcpy(static_cast<std::byte*>(entry.tensor->data) + offset, before.data() + offset,
                  before.size() - static_cast<std::size_t>(offset));
    }
  }
}

void scale_query_in_place(const Call& call, const Scratch&) {
  const quire_tensor* q = call.tensor("q");
  if (q == nullptr) return;
  const auto dtype = static_cast<DType>(q->dtype);
  for_elements(*q, [dtype](std::byte* place) {
    const float scaled = honest::read(dtype, place) * 0.5F;
    honest::write(dtype, &scaled, place, 1);
  });
}
void clamp_positions_in_place(const Call& call, const Scratch&) {
  const quire_tensor* pos = call.tensor("index.pos");
  if (pos == nullptr) return;
  for_elements(*pos, [](std::byte* place) {
    std::int64_t t;
    std::memcpy(&t, place, sizeof t);
    if (t >= 0) return;
    t = 0;
    std::memcpy(place, &t, sizeof t);
  });
}

bool always(const Call&) { return true; }
bool odd_width(const Call& call) {
  const quire_tensor* q = call.tensor("q");
  return q != nullptr && q->rank > 0 && q->shape[q->rank - 1] % 2 != 0;
}
bool small_state(const Call& call) {
  const quire_tensor* pool = call.tensor(call.op() == QUIRE_OP_GDN_PREFILL ? "output_state" : "state_pool");
  return pool != nullptr && (pool->dtype == QUIRE_F8_E4M3FN || pool->dtype == QUIRE_F8_E5M2);
}

Specification skipping(const char* name, const char* mistake, std::vector<std::string> laws, bool (*skips)(const Call&)) {
  Specification mutant{name, mistake, std::move(laws)};
  mutant.skips = skips;
  return mutant;
}
Specification partly_unwritten() {
  Specification mutant =
      spoilt("last-rows-unwritten", "the last lane, or token, of every result is not written", {"B6", "C5", "D1", "E1"}, restore_last_rows);
  mutant.change = keep_results;
  return mutant;
}
Specification varying() {
  Specification mutant{"sums-in-another-order", "sums run in another order at every second call", {"D1", "E1"}};
  mutant.vary = reverse_every_second_call;
  mutant.needs = Needs::repeats;
  return mutant;
}

}  // namespace

std::vector<Specification> backend_mutants() {
  return {
      within("element-past-output-written", "one element past the output is written", {"B7", "C4", "E8"},
             Fault::element_past_output_written, Needs::guards),
      within("last-value-unwritten", "values are written two at a time, the last of an odd row not at all", {"D1", "E1"},
             Fault::last_value_unwritten),
      within("output-toward-zero", "outputs are rounded toward zero", {"D1", "E1"}, Fault::output_toward_zero),
      partly_unwritten(),
      spoilt("all-nan", "every floating result is NaN", {"C1", "D1", "E1"}, fill_with_nan),
      spoilt("all-3e25", "every floating result is 3e25", {"C1", "D1", "E1"}, fill_with_3e25),
      spoilt("all-zero", "every result is zero", {"A12", "B6", "C1", "D1", "E1", "E11", "E12"}, fill_with_zero),
      spoilt("one-in-a-thousand-wrong", "about one element in a thousand has the wrong sign", {"C1", "D1", "E1"}, break_one_in<1000>),
      spoilt("one-in-a-million-wrong", "about one element in a million has the wrong sign", {"C1", "D1", "E1"}, break_one_in<1000000>,
             Needs::many_elements),
      spoilt("bit-flips-now-and-then", "every third call has another last bit", {"C1", "D1", "E1"}, flip_last_bit_now_and_then,
             Needs::repeats),
      varying(),
      spoilt("query-scaled-in-place", "the call leaves its query halved", {"D1", "E1"}, scale_query_in_place),
      spoilt("positions-clamped-in-place", "the call leaves padding at position 0", {"A2", "A13"}, clamp_positions_in_place),
      skipping("supports-what-it-does-not-do", "every call is supported and answers OK, and nothing is computed",
               {"A12", "B6", "C1", "D1", "E1", "E11", "E12", "F2"}, always),
      skipping("odd-widths-not-computed", "odd widths are supported and answer OK, and are not computed", {"D1", "E1"}, odd_width),
      skipping("fp8-states-not-computed", "fp8 states are supported and answer OK, and are not computed", {"E5"}, small_state),
  };
}

}  // namespace quire::conformance
