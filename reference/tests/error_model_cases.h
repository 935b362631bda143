// Cases for the error model: random inputs in regimes that stress rounding, and the calls' arguments around them.
#pragma once

#include <quire/dtype.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "../src/rows.h"
#include "error_model_arithmetic.h"

namespace error_model_tests {

/// Counter-based, so that a case is its number.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  double normal();
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::uint64_t state_;
};

/// A dense tensor of its own.
class Buffer {
 public:
  Buffer() = default;
  Buffer(quire::DType dtype, std::vector<std::int64_t> shape) : shape_(std::move(shape)), strides_(shape_.size()) {
    std::int64_t count = 1;
    for (std::size_t a = shape_.size(); a-- > 0;) {
      strides_[a] = count;
      count *= shape_[a];
    }
    bytes_.resize(static_cast<std::size_t>(count * quire::size_of(dtype)));
    tensor_.dtype = static_cast<quire_dtype>(dtype);
  }
  /// Rounded into the dtype.
  template <typename T>
  Buffer(quire::DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) : Buffer(dtype, std::move(shape)) {
    const std::vector<double> wide(values.begin(), values.end());
    quire::reference::narrow(dtype, wide.data(), bytes_.data(), static_cast<std::int64_t>(wide.size()));
  }
  static Buffer integers(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
    Buffer buffer(quire::DType::i64, std::move(shape));
    std::memcpy(buffer.bytes_.data(), values.data(), buffer.bytes_.size());
    return buffer;
  }
  const quire_tensor* operator&() {
    tensor_.struct_size = sizeof tensor_;
    tensor_.data = bytes_.data();
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
    tensor_.rank = static_cast<std::int32_t>(shape_.size());
    return &tensor_;
  }
  std::byte* data() { return bytes_.data(); }
  std::vector<double> values() const {
    const auto dtype = static_cast<quire::DType>(tensor_.dtype);
    std::vector<double> wide(bytes_.size() / static_cast<std::size_t>(quire::size_of(dtype)));
    quire::reference::widen(dtype, bytes_.data(), wide.data(), static_cast<std::int64_t>(wide.size()));
    return wide;
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::int64_t> shape_, strides_;
  quire_tensor tensor_{};
};

/// A sequence and head, with the dtypes its tensors have; the values are such as those dtypes hold.
struct RuleDraw : RuleCase {
  quire::DType dtype = quire::DType::f32, state_dtype = quire::DType::f32;
  std::string regime;
};
RuleDraw draw_rule(std::uint64_t number, std::int64_t most_tokens, std::int64_t most_size);

struct AttendDraw : AttendCase {
  quire::DType dtype = quire::DType::f32;
  std::vector<std::int64_t> holes;  ///< columns without a slot, whose k and v are zeros
  std::string regime;
};
AttendDraw draw_attend(std::uint64_t number, std::int64_t most_columns, std::int64_t most_size);

/// Rounds values as a tensor of the dtype holds them.
void hold(std::vector<float>& values, quire::DType dtype);

}  // namespace error_model_tests
