// How far an honest backend may be off: tolerances derived from its numerics contract, element by element, beside the reference.
//
// For a call and a contract the model gives each floating result's unrounded float64 value and the standard deviation of the error that
// the contract's arithmetic makes before its one final rounding. `factor` deviations around the value are accepted, then rounded into
// the result's dtype. The derivations stand beside the code: error_model_attend.cpp, error_model_rule.h.
//
// Conventions: a rounding of unit roundoff u counts as an independent error of deviation u (uniform errors have 0.58 u at most, so this is
// on the safe side), and a sum of n terms in an unknown order as in `Roundoff::sum`. Errors known to repeat are added coherently.
#pragma once

#include <quire/backend.h>

#include <cstdint>
#include <map>
#include <vector>

namespace quire::reference {

/// The deviation of an element that the laws leave unspecified (B7).
inline constexpr double no_bound = -1;

/// Row-major over a dense tensor of the result's shape: the unrounded float64 result, and the standard deviation of an honest
/// implementation's error before its final rounding. A deviation is `no_bound` where the element is unspecified, infinity where
/// the contract's arithmetic may overflow on the way, and 0 where `center` is infinite or NaN.
struct Bounds {
  std::vector<double> center, deviation;
};

/// out [B, S, Hq, Dv] and lse [B, S, Hq].
struct AttendBounds {
  Bounds out, lse;
};
/// The pools hold what they hold after the call's stores. args.out and args.lse are not read.
AttendBounds attend_bounds(const quire_attend_args& args, const quire_contract& contract);

/// The output, and each row that the call stores in a pool of states, [H, V, K]. Decode and verify store in `output_state` alone, which
/// stands for state_pool. A padded sequence's or token's output is 0 with deviation 0.
struct GdnBounds {
  Bounds output;
  std::map<std::int64_t, Bounds> output_state, state_checkpoints;
};
/// The pools hold what they hold before the call. No result is read.
GdnBounds gdn_prefill_bounds(const quire_gdn_prefill_args& args, const quire_contract& contract);
GdnBounds gdn_decode_bounds(const quire_gdn_decode_args& args, const quire_contract& contract);
GdnBounds gdn_verify_bounds(const quire_gdn_verify_args& args, const quire_contract& contract);

/// The deviations that an honest error may have: one published number per contract. 8, and 12 where operands or stored intermediates
/// are narrower than the sums. Largest errors of honest implementations met by tests/error_model_test.cpp, in deviations: attention 4.6
/// (float32) and 1.9 (bf16, tf32) in 150,000 cases each; the gated delta rule 3.9 (float32) and 6.4 (bf16, tf32, narrow states) in 105,000
/// cases each, numbers 0 to 104,999. The honest backends' ratios by op, contract and regime: conformance/calibration.md.
double factor(const quire_contract& contract);

/// Whether `value`, as the dtype holds it, may be an honest result: it lies between the dtype's roundings (E5's saturation included) of
/// center - factor * deviation and center + factor * deviation. A NaN is accepted where center is NaN, anything where the
/// deviation is `no_bound` or infinite. Exact in every case.
bool accepts(double value, double center, double deviation, quire_dtype dtype, const quire_contract& contract);

/// How much of `factor` deviations it takes to accept a value: 0 where the final rounding of `center` is enough, 1 at the end of what is
/// accepted, infinity beyond; exact to 2^-10. For reports: what is left of an error without everybody's final rounding.
double share(double value, double center, double deviation, quire_dtype dtype, const quire_contract& contract);

/// The same as a distance, for reports: the furthest from `center` that an accepted value on either side can be, so half an ulp
/// included. Infinite where the element is unspecified or an infinity is among the accepted; 0 where `center` is NaN or is an infinity
/// that the dtype holds.
double allowed(double center, double deviation, quire_dtype dtype, const quire_contract& contract);

}  // namespace quire::reference
