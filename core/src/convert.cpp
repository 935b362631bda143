// Conversions of whole arrays between float64 and the smaller floating types.
#include <quire/convert.h>

#include <cassert>
#include <cstddef>

namespace quire {
namespace {

// One loop for all types; the conversion is a template argument so that it is inlined and the loop
// vectorises.
template <auto Convert, typename From, typename To>
void convert_each(std::span<const From> from, std::span<To> to) {
  assert(to.size() >= from.size());
  const From* const source = from.data();
  To* const target = to.data();
  const std::size_t count = from.size();
  for (std::size_t i = 0; i < count; ++i) target[i] = Convert(source[i]);
}

// Names the scalar overload.
template <typename To, typename From>
using Scalar = To (*)(From);

}  // namespace

void to_f16(std::span<const double> from, std::span<std::uint16_t> to) {
  convert_each<static_cast<Scalar<std::uint16_t, double>>(to_f16)>(from, to);
}

void to_bf16(std::span<const double> from, std::span<std::uint16_t> to) {
  convert_each<static_cast<Scalar<std::uint16_t, double>>(to_bf16)>(from, to);
}

void to_f8_e4m3fn(std::span<const double> from, std::span<std::uint8_t> to) {
  convert_each<static_cast<Scalar<std::uint8_t, double>>(to_f8_e4m3fn)>(from, to);
}

void to_f8_e5m2(std::span<const double> from, std::span<std::uint8_t> to) {
  convert_each<static_cast<Scalar<std::uint8_t, double>>(to_f8_e5m2)>(from, to);
}

void to_f32(std::span<const double> from, std::span<float> to) {
  convert_each<static_cast<Scalar<float, double>>(to_f32)>(from, to);
}

void from_f16(std::span<const std::uint16_t> from, std::span<double> to) {
  convert_each<static_cast<Scalar<double, std::uint16_t>>(from_f16)>(from, to);
}

void from_bf16(std::span<const std::uint16_t> from, std::span<double> to) {
  convert_each<static_cast<Scalar<double, std::uint16_t>>(from_bf16)>(from, to);
}

void from_f8_e4m3fn(std::span<const std::uint8_t> from, std::span<double> to) {
  convert_each<static_cast<Scalar<double, std::uint8_t>>(from_f8_e4m3fn)>(from, to);
}

void from_f8_e5m2(std::span<const std::uint8_t> from, std::span<double> to) {
  convert_each<static_cast<Scalar<double, std::uint8_t>>(from_f8_e5m2)>(from, to);
}

void from_f32(std::span<const float> from, std::span<double> to) {
  convert_each<static_cast<Scalar<double, float>>(from_f32)>(from, to);
}

}  // namespace quire
