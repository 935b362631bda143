// From a deviation to what is accepted: the factors of the contracts, and the final rounding (E5).
#include "error_model.h"

#include "rows.h"

#include <cmath>
#include <limits>

namespace quire::reference {

namespace {

double rounded(double x, quire_dtype dtype) {
  std::byte bytes[sizeof(double)];
  narrow(static_cast<DType>(dtype), x, bytes);
  return widen(static_cast<DType>(dtype), bytes);
}

}  // namespace

double factor(const quire_contract& contract) {
  // Roundings to a narrow type are fewer, and alike more often.
  const bool narrow_operands = contract.u_product > contract.u_accumulate, narrow_stores = contract.u_store > contract.u_accumulate;
  return narrow_operands || narrow_stores ? 12 : 8;
}

bool accepts(double value, double center, double deviation, quire_dtype dtype, const quire_contract& contract) {
  if (deviation < 0 || std::isinf(deviation)) return true;
  if (center != center) return value != value;
  const double reach = deviation > 0 ? factor(contract) * deviation : 0;
  // Rounding keeps order, so the honest results are the dtype's values between the rounded ends.
  return rounded(center - reach, dtype) <= value && value <= rounded(center + reach, dtype);
}

double share(double value, double center, double deviation, quire_dtype dtype, const quire_contract& contract) {
  if (!accepts(value, center, deviation, dtype, contract)) return std::numeric_limits<double>::infinity();
  if (accepts(value, center, 0, dtype, contract) || !(deviation > 0) || std::isinf(deviation)) return 0;
  double too_little = 0, enough = 1;
  while (enough - too_little > 0x1p-10) {
    const double middle = (too_little + enough) / 2;
    (accepts(value, center, middle * deviation, dtype, contract) ? enough : too_little) = middle;
  }
  return enough;
}

double allowed(double center, double deviation, quire_dtype dtype, const quire_contract& contract) {
  if (deviation < 0 || std::isinf(deviation)) return std::numeric_limits<double>::infinity();
  const double reach = deviation > 0 ? factor(contract) * deviation : 0;
  const double low = rounded(center - reach, dtype);
  const double high = rounded(center + reach, dtype);
  const auto distance = [&](double end) { return end == center || center != center ? 0.0 : std::fabs(end - center); };
  // An infinite center that saturates is infinitely far from its result.
  return std::fmax(distance(low), distance(high));
}

}  // namespace quire::reference
