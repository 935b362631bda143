// What core's tests share: small tensors, caught errors, equal bits, restored environment variables.
#pragma once

#include <quire/ops.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Lists in messages.
template <typename T>
struct doctest::StringMaker<std::vector<T>> {
  static doctest::String convert(const std::vector<T>& values) {
    doctest::String text = "[";
    for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? doctest::String(", ") : doctest::String()) + doctest::toString(values[i]);
    return text + doctest::String("]");
  }
};
template <>
struct doctest::StringMaker<std::pair<std::string, std::string>> {
  static doctest::String convert(const std::pair<std::string, std::string>& entry) { return (entry.first + ": " + entry.second).c_str(); }
};

namespace quire::test {

inline Tensor i64(std::initializer_list<std::int64_t> values, Shape shape) {
  return Tensor::of(std::span<const std::int64_t>(values.begin(), values.size()), std::move(shape));
}
inline Tensor i32(std::initializer_list<std::int32_t> values, Shape shape) {
  return Tensor::of(std::span<const std::int32_t>(values.begin(), values.size()), std::move(shape));
}
inline Tensor f32(std::initializer_list<float> values, Shape shape) {
  return Tensor::of(std::span<const float>(values.begin(), values.size()), std::move(shape));
}
inline Tensor bools(std::initializer_list<std::uint8_t> values, Shape shape) {
  return Tensor::of_bools(std::span<const std::uint8_t>(values.begin(), values.size()), std::move(shape));
}
inline Tensor i64(const std::vector<std::int64_t>& values, Shape shape) {
  return Tensor::of(std::span<const std::int64_t>(values), std::move(shape));
}
inline Tensor i32(const std::vector<std::int32_t>& values, Shape shape) {
  return Tensor::of(std::span<const std::int32_t>(values), std::move(shape));
}

/// A number spread over 64 bits, the same everywhere.
inline std::uint64_t mixed(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
/// In [0, 1).
inline double unit(std::uint64_t counter) { return static_cast<double>(mixed(counter) >> 11) * 0x1p-53; }

/// Calls body(pointer to the element) for each element, row-major, whatever the strides.
template <typename Body>
void for_elements(const Tensor& tensor, const Body& body) {
  const std::int64_t count = tensor.elements();
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    std::int64_t offset = 0;
    for (std::int64_t axis = tensor.rank(); axis-- > 0;) {
      offset += rest % tensor.size(axis) * tensor.stride(axis);
      rest /= tensor.size(axis);
    }
    body(n, tensor.raw() + offset * size_of(tensor.dtype()));
  }
}

/// Values in [low, high), rounded into the tensor's dtype.
inline Tensor fill(Tensor tensor, std::uint64_t seed, double low = -1, double high = 1) {
  for_elements(tensor, [&](std::int64_t n, std::byte* element) {
    const double value = low + (high - low) * unit(seed * 0x100000000u + static_cast<std::uint64_t>(n));
    write_number(tensor.dtype(), element, value);
  });
  return tensor;
}
inline Tensor filled(DType dtype, Shape shape, std::uint64_t seed, double low = -1, double high = 1) {
  return fill(Tensor::empty(dtype, std::move(shape)), seed, low, high);
}

/// Elements as bytes, row-major.
inline std::string bytes(const Tensor& tensor) {
  std::string all;
  for_elements(tensor, [&](std::int64_t, const std::byte* element) {
    all.append(reinterpret_cast<const char*>(element), static_cast<std::size_t>(size_of(tensor.dtype())));
  });
  return all;
}
inline bool same_bits(const Tensor& one, const Tensor& other) {
  return one.defined() == other.defined() && one.dtype() == other.dtype() && one.shape() == other.shape() && bytes(one) == bytes(other);
}

/// Elements as numbers, row-major.
inline std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> all;
  for_elements(tensor, [&](std::int64_t, const std::byte* element) { all.push_back(read_number(tensor.dtype(), element)); });
  return all;
}
inline std::vector<std::int64_t> whole_numbers(const Tensor& tensor) {
  std::vector<std::int64_t> all;
  for_elements(tensor, [&](std::int64_t, const std::byte* element) { all.push_back(read_integer(tensor.dtype(), element)); });
  return all;
}
using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;

inline Index rows(std::int64_t context, std::vector<std::int64_t> lens, std::vector<std::int64_t> every = {}) {
  return Index::rows(context, lens, every);
}
inline Index packed(std::int64_t seq, std::vector<std::vector<std::int64_t>> lens) { return Index::packed(seq, lens); }

struct Caught {
  bool raised = false;
  ErrorCode code = ErrorCode::internal;
  std::string argument;
  std::string message;
};
template <typename Body>
Caught caught(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return {true, error.code(), error.argument(), error.what()};
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The call raises invalid_argument for `argument`, and its message says what was given and what is allowed.
template <typename Body>
void check_rejected(const Body& body, const std::string& argument, const std::string& given, const std::string& allowed) {
  const Caught error = caught(body);
  CAPTURE(argument);
  CAPTURE(given);
  CAPTURE(allowed);
  CAPTURE(error.message);
  REQUIRE(error.raised);
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK(error.argument == argument);
  const std::size_t middle = error.message.find("; allowed: ");
  REQUIRE(middle != std::string::npos);
  CHECK(error.message.substr(0, argument.size() + 2) == argument + ": ");
  CHECK(contains(error.message.substr(0, middle), given));
  CHECK(contains(error.message.substr(middle), allowed));
}

/// Sets or unsets an environment variable until the end of the scope.
class Environment {
 public:
  Environment(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    put(value);
  }
  ~Environment() { put(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void put(const char* value) const {
    if (value != nullptr) {
      setenv(name_.c_str(), value, 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace quire::test
