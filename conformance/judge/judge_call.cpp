// Judging one call of a backend.
#include "judge_call.h"

#include "execute.h"
#include "naming.h"
#include "sandbox.h"

#include "case/reserved.h"
#include "error_model.h"

#include <quire/host_backend.h>
#include <quire/tensor.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace quire::conformance {

namespace {

using reference::Bounds;

// Two different patterns in what must be written: an element that differs between the runs as they do was not written.
constexpr std::byte first_fill{0xFF};
constexpr std::byte second_fill{0x5A};

// No law: what the ABI's header asks of every call.
constexpr std::string_view abi_law = "ABI";

/// The contract's tolerance for a tensor of a call: for all of it, or for rows of a pool.
struct Tolerances {
  std::map<std::string_view, Bounds> whole;
  std::map<std::string_view, std::map<std::int64_t, Bounds>> rows;
  std::set<std::int64_t> checkpoints;  // rows that the call stores a checkpoint in
};

/// One element of a result: the n-th of its tensor, as it should be and as it is.
struct Element {
  const CallTensor& tensor;
  std::int64_t n;
  DType dtype;
  const std::byte* wanted;
  const std::byte* got;
  RowUse use = RowUse::kept;
  const std::byte* again = nullptr;  // as a second run leaves it, where that differs
};

class CallJudge {
 public:
  CallJudge(const Backend& candidate, const Backend& reference, quire_op op, const void* args, bool wants_shares, const Stream* stream, const Placement& placement)
      : candidate_(candidate), reference_(reference), op_(op), args_(args), wants_shares_(wants_shares), stream_(stream), placement_(placement), expected_(op, args, std::byte{0}) {}

  CallVerdict run() {
    CallVerdict verdict;
    verdict.op = op_name(op_);
    Tolerances tolerances;
    guarded(verdict, "supports", [&] { verdict.reason = unsupported_reason(candidate_, placement_, op_, args_); });
    if (!verdict.reason.empty()) verdict.status = CallVerdict::Status::unsupported;
    if (verdict.status == CallVerdict::Status::passed) guarded(verdict, "contract", [&] { contract_ = contract(); });
    const bool is_judged = verdict.status == CallVerdict::Status::passed;
    if (is_judged) tolerances = tolerances_before();
    reference_.run(nullptr, op_, expected_.args());
    if (is_judged) {
      tolerances_after(tolerances);
      judge(tolerances, verdict);
    }
    expected_.copy_back();
    return verdict;
  }

 private:
  // What the candidate does wrong is its failure, and no error of the call.
  template <typename Step>
  void guarded(CallVerdict& verdict, std::string_view step, const Step& take) {
    try {
      take();
    } catch (const std::exception& error) {
      fail(verdict, abi_law, {}, {}, fmt::format("{} failed: {}", step, error.what()));
    } catch (...) {
      fail(verdict, abi_law, {}, {}, fmt::format("{} threw something, which nothing may across the ABI", step));
    }
  }

  // Raises quire::Error for a contract that no arithmetic has: every result would be within its tolerance.
  quire_contract contract() const {
    const quire_contract claimed = claimed_contract();
    constexpr double coarsest = 0x1p-3;  // float8_e5m2's roundoff
    for (const auto& [name, roundoff] : {std::pair<const char*, double>{"u_product", claimed.u_product},
                                         {"u_accumulate", claimed.u_accumulate},
                                         {"u_store", claimed.u_store},
                                         {"u_exp", claimed.u_exp}}) {
      if (!(roundoff >= 0 && roundoff <= coarsest)) reject(name, fmt::format("{}", roundoff), "0 to 2^-3");
    }
    if (claimed.chunk_length < 1) reject("chunk_length", fmt::format("{}", claimed.chunk_length), "1 or more");
    return claimed;
  }

  quire_contract claimed_contract() const {
    const quire_tensor* input = expected_.call().tensor("q");
    const char* states[] = {"state_pool", "output_state", "initial_state", "state_checkpoints"};
    quire_dtype state = QUIRE_F32;
    for (const char* name : states) {
      if (const quire_tensor* tensor = expected_.call().tensor(name); tensor != nullptr) {
        state = tensor->dtype;
        break;
      }
    }
    return candidate_.contract(op_, static_cast<DType>(input != nullptr ? input->dtype : static_cast<quire_dtype>(QUIRE_F32)), static_cast<DType>(state));
  }

  // The gated delta rule's, from the states as they are before the call.
  Tolerances tolerances_before() const {
    Tolerances tolerances;
    const auto take = [&](reference::GdnBounds bounds, std::string_view state) {
      tolerances.whole.emplace("output", std::move(bounds.output));
      for (const auto& [row, of_row] : bounds.state_checkpoints) tolerances.checkpoints.insert(row);
      // One pool may be both: a row that either stores is judged by it.
      if (const quire_tensor *final = expected_.call().tensor(state), *checkpoints = expected_.call().tensor("state_checkpoints");
          final != nullptr && checkpoints != nullptr && final->data == checkpoints->data) {
        bounds.output_state.insert(bounds.state_checkpoints.begin(), bounds.state_checkpoints.end());
        bounds.state_checkpoints = bounds.output_state;
      }
      tolerances.rows.emplace(state, std::move(bounds.output_state));
      tolerances.rows.emplace("state_checkpoints", std::move(bounds.state_checkpoints));
    };
    switch (op_) {
      case QUIRE_OP_GDN_PREFILL: take(reference::gdn_prefill_bounds(*static_cast<const quire_gdn_prefill_args*>(args_), contract_), "output_state"); break;
      case QUIRE_OP_GDN_DECODE: take(reference::gdn_decode_bounds(*static_cast<const quire_gdn_decode_args*>(args_), contract_), "state_pool"); break;
      case QUIRE_OP_GDN_VERIFY: take(reference::gdn_verify_bounds(*static_cast<const quire_gdn_verify_args*>(args_), contract_), "state_pool"); break;
      default: break;
    }
    return tolerances;
  }

  // Attention's, from the pools as the call's stores leave them.
  void tolerances_after(Tolerances& tolerances) const {
    if (op_ != QUIRE_OP_ATTEND) return;
    reference::AttendBounds bounds = reference::attend_bounds(*static_cast<const quire_attend_args*>(expected_.args()), contract_);
    tolerances.whole.emplace("out", std::move(bounds.out));
    tolerances.whole.emplace("lse", std::move(bounds.lse));
  }

  void judge(const Tolerances& tolerances, CallVerdict& verdict) {
    Sandbox first(op_, args_, first_fill);
    Sandbox second(op_, args_, second_fill);
    guarded(verdict, "run, after supports said yes,", [&] { run_at_once(candidate_, placement_, first); });
    is_step_ = false;
    guarded(verdict, "capture or launch, after supports said yes,", [&] { is_step_ = run_as_step(candidate_, placement_, second, stream_); });
    if (!is_step_) guarded(verdict, "run, after supports said yes,", [&] { run_at_once(candidate_, placement_, second); });
    if (verdict.status == CallVerdict::Status::failed) return;
    for (const Sandbox* run : {&first, &second}) {
      for (const std::string& text : run->violations()) fail(verdict, abi_law, {}, {}, text);
    }
    const auto& expected = expected_.call().tensors();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].role == TensorRole::read) continue;
      compare(expected[i], *first.call().tensors()[i].tensor, *second.call().tensors()[i].tensor, tolerances, verdict);
    }
  }

  void compare(const CallTensor& expected, const quire_tensor& got, const quire_tensor& again, const Tolerances& tolerances, CallVerdict& verdict) {
    const auto dtype = static_cast<DType>(got.dtype);
    const std::int64_t size = size_of(dtype);
    const auto whole = tolerances.whole.find(expected.name);
    const auto rows = tolerances.rows.find(expected.name);
    std::int64_t row_elements = 1;
    for (std::int32_t a = 1; a < got.rank; ++a) row_elements *= got.shape[a];
    // One pool may take final states and checkpoints.
    const quire_tensor* checkpoints = expected_.call().tensor("state_checkpoints");
    const bool is_checkpoint_pool = checkpoints != nullptr && checkpoints->data == expected.tensor->data;
    const auto element_wrong = [&](std::int64_t n, const std::byte* element, const std::byte* wanted, const std::byte* repeated) {
      const Bounds* bounds = whole != tolerances.whole.end() ? &whole->second : nullptr;
      Element at{expected, n, dtype, wanted, element};
      std::int64_t place = n;
      if (rows != tolerances.rows.end() && row_elements > 0) {
        const auto row = rows->second.find(n / row_elements);
        bounds = row != rows->second.end() ? &row->second : nullptr;
        place = n % row_elements;
        const bool is_checkpoint = expected.name == "state_checkpoints" || (is_checkpoint_pool && tolerances.checkpoints.contains(n / row_elements));
        if (bounds != nullptr) at.use = is_checkpoint ? RowUse::checkpoint : RowUse::state;
      }
      if (std::memcmp(element, repeated, static_cast<std::size_t>(size)) != 0) {
        const bool unwritten = expected.role == TensorRole::write && is_filled(element, size, first_fill) && is_filled(repeated, size, second_fill);
        if (!unwritten) at.again = repeated;
        fail_at(verdict, at, unwritten ? "is not written" : is_step_ ? "differs from one run to the next, which is captured and launched" : "differs from one run to the next", {});
      } else if (bounds == nullptr) {
        if (std::memcmp(element, wanted, static_cast<std::size_t>(size)) != 0) fail_at(verdict, at, "must be equal bit for bit", {});
      } else if (bounds->deviation[static_cast<std::size_t>(place)] >= 0) {
        within(verdict, at, bounds->center[static_cast<std::size_t>(place)], bounds->deviation[static_cast<std::size_t>(place)]);
      }
    };
    const auto bytes = static_cast<std::size_t>(got.rank > 0 ? got.shape[0] * row_elements * size : size);
    if (is_reserved_size(bytes)) {
      // Reserved memory is dense, and zero where no run used it.
      std::set<std::int64_t> used;
      for (const quire_tensor* tensor : {static_cast<const quire_tensor*>(expected.tensor), &got, &again}) {
        for (const auto& [first, last] : used_ranges(static_cast<const std::byte*>(tensor->data), bytes)) {
          for (auto row = static_cast<std::int64_t>(first) / (row_elements * size); row * row_elements * size < static_cast<std::int64_t>(last); ++row) used.insert(row);
        }
      }
      const auto at = [&](const quire_tensor& tensor, std::int64_t n) { return static_cast<const std::byte*>(tensor.data) + n * size; };
      for (const std::int64_t row : used) {
        for (std::int64_t n = row * row_elements; n < (row + 1) * row_elements; ++n) element_wrong(n, at(got, n), at(*expected.tensor, n), at(again, n));
      }
      return;
    }
    std::vector<const std::byte*> others, runs;
    for_each_element(*expected.tensor, size, [&](const std::byte* element) { others.push_back(element); });
    for_each_element(again, size, [&](const std::byte* element) { runs.push_back(element); });
    std::int64_t n = 0;
    for_each_element(got, size, [&](const std::byte* element) {
      element_wrong(n, element, others[static_cast<std::size_t>(n)], runs[static_cast<std::size_t>(n)]);
      ++n;
    });
  }

  void within(CallVerdict& verdict, const Element& at, double center, double deviation) {
    const double value = read_number(at.dtype, at.got);
    const auto code = static_cast<quire_dtype>(at.dtype);
    const double allowed = reference::allowed(center, deviation, code, contract_);
    const double error = std::fabs(value - center);
    const double ratio = error == 0 ? 0 : error / allowed;
    if (std::isfinite(ratio)) verdict.errors.add(ratio);
    if (wants_shares_ && std::isfinite(ratio)) verdict.shares.add(reference::share(value, center, deviation, code, contract_));
    if (reference::accepts(value, center, deviation, code, contract_)) return;
    const bool is_nan = std::isnan(value) && !std::isnan(center);
    fail_at(verdict, at, std::isfinite(ratio) ? fmt::format("is {:.3g} times the tolerance off", ratio) : is_nan ? "is not a number" : "must be the same",
            fmt::format("{:.3g}", allowed));
  }

  static bool is_filled(const std::byte* element, std::int64_t size, std::byte fill) {
    for (std::int64_t i = 0; i < size; ++i) {
      if (element[i] != fill) return false;
    }
    return true;
  }

  void fail_at(CallVerdict& verdict, const Element& at, const std::string& what, const std::string& tolerance) {
    if (verdict.status == CallVerdict::Status::failed) return;  // the first says most
    const CallTensor& tensor = at.tensor;
    std::vector<std::int64_t> indices(static_cast<std::size_t>(tensor.tensor->rank));
    std::int64_t n = at.n;
    for (std::size_t axis = indices.size(); axis-- > 0;) {
      indices[axis] = n % tensor.tensor->shape[axis];
      n /= tensor.tensor->shape[axis];
    }
    const auto text = [&](const std::byte* element) {
      return is_float(at.dtype) ? fmt::format("{}", read_number(at.dtype, element)) : fmt::format("{}", read_integer(at.dtype, element));
    };
    std::vector<std::string> laws = laws_in_force(expected_.call(), tensor.name, indices, at.use);
    fail(verdict, laws.front(), tensor.name, place_of(expected_.call(), tensor.name, indices), {});
    Failure& failure = verdict.failure;
    failure.also.assign(laws.begin() + 1, laws.end());
    failure.what = what;
    failure.expected = text(at.wanted);
    failure.got = at.again == nullptr ? text(at.got) : fmt::format("{}, then {}", text(at.got), text(at.again));
    failure.tolerance = tolerance;
    failure.message = failure.message_of_element();
  }

  void fail(CallVerdict& verdict, std::string_view law, std::string_view tensor, std::string place, const std::string& what) {
    if (verdict.status == CallVerdict::Status::failed) return;
    verdict.status = CallVerdict::Status::failed;
    verdict.failure = {std::string(op_name(op_)), std::string(law), {}, std::string(tensor), std::move(place), what, {}, {}, {}, fmt::format("{}: {}", op_name(op_), what)};
  }

  const Backend& candidate_;
  const Backend& reference_;
  quire_op op_;
  const void* args_;
  bool wants_shares_;
  const Stream* stream_;
  Placement placement_;
  bool is_step_ = false;  // whether the second run is a captured step
  Sandbox expected_;
  quire_contract contract_{};
};

// The judge whose backend is being called on this thread.
thread_local Judging* current = nullptr;
thread_local std::string failure_text;

}  // namespace

CallVerdict judge_call(const Backend& candidate, const Backend& reference, quire_op op, const void* args, bool wants_shares, const Stream* stream,
                       std::optional<Placement> placement) {
  return CallJudge(candidate, reference, op, args, wants_shares, stream, placement ? *placement : Placement(candidate)).run();
}

quire_backend_table Judging::table_for(const Backend& reference) {
  quire_backend_table table = reference.table();
  table.run = Judging::run;
  // A step's calls are judged one by one.
  table.capture = [](quire_device, const quire_call* calls, std::int32_t count, quire_step** step) {
    return host::capture(calls, count, step, current->reference_.table().supports);
  };
  table.launch = [](quire_stream*, quire_step* step, const quire_tensor* const* tensors, std::int32_t count) {
    return host::launch(step, tensors, count, [](quire_op op, const void* args) { return Judging::run(nullptr, op, args, nullptr, 0); });
  };
  table.last_error = [] { return failure_text.c_str(); };
  return table;
}

Judging::Judging(const Backend& candidate, const Backend& reference, std::optional<std::int32_t> device)
    : candidate_(candidate), reference_(reference), placement_(candidate, device), table_(table_for(reference)), backend_(&table_, "(judging)"), outer_(current) {
  current = this;
}

Judging::~Judging() { current = outer_; }

const Stream* Judging::stream() {
  // Made for the first call. Where that fails, the calls are synchronous, and the failure is found where streams are tested.
  if (!stream_) {
    try {
      stream_ = std::make_unique<Stream>(candidate_, placement_.device);
    } catch (const Error&) {
      return nullptr;
    }
  }
  return stream_.get();
}

std::vector<CallVerdict> Judging::take() { return std::exchange(verdicts_, {}); }

quire_status Judging::run(quire_stream*, quire_op op, const void* args, void*, std::size_t) {
  try {
    CallVerdict verdict = judge_call(current->candidate_, current->reference_, op, args, current->classify_ != nullptr, current->stream(), current->placement_);
    if (current->classify_) verdict.regimes = current->classify_(op, args);
    current->verdicts_.push_back(std::move(verdict));
    return QUIRE_OK;
  } catch (const Error& error) {
    failure_text = error.what();
    return static_cast<quire_status>(error.code());
  } catch (const std::exception& error) {
    failure_text = error.what();
    return QUIRE_INTERNAL;
  }
}

}  // namespace quire::conformance
