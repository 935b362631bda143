// Tensors: a dtype, a shape, strides, and memory that is owned, shared or borrowed.
#pragma once

#include <quire/dtype.h>
#include <quire/error.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct DLManagedTensor;

namespace quire {

using Shape = std::vector<std::int64_t>;

/// "[2, 3]".
std::string to_string(std::span<const std::int64_t> shape);

/// A device, by DLPack's numbers.
struct Device {
  std::int32_t type = QUIRE_DEVICE_CPU;
  std::int32_t id = 0;
  bool is_host() const { return type == QUIRE_DEVICE_CPU; }
  friend bool operator==(const Device&, const Device&) = default;
};

/// Elements of a shape. Raises invalid_argument naming `argument` when an axis is negative or the product exceeds 2^63 - 1.
std::int64_t count_elements(std::span<const std::int64_t> shape, std::string_view argument);

/// The most bytes that one tensor may have: QUIRE_MAX_MEMORY where it is set (bytes, or with K, M, G, T), else half of this machine's memory.
std::int64_t allowed_bytes();

/// Bytes of a dense tensor. Raises invalid_argument naming `argument` when they overflow or exceed allowed_bytes(); allocates nothing.
std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> shape, std::string_view argument);

/// A handle: copying one shares the memory (use `clone` for a copy of the elements). Row-major unless strides say otherwise;
/// strides count elements.
class Tensor {
 public:
  /// No tensor at all; `defined()` is false.
  Tensor() = default;

  /// New memory, its contents unspecified. Raises as `checked_bytes`.
  static Tensor empty(DType dtype, Shape shape, std::string_view argument = "shape");
  /// New memory of zero bits.
  static Tensor zeros(DType dtype, Shape shape, std::string_view argument = "shape");
  /// New memory laid out with axis 0 at `row_stride` elements (at least a row; the gaps are unspecified).
  static Tensor empty_padded(DType dtype, Shape shape, std::int64_t row_stride, std::string_view argument = "row_stride");
  /// Somebody else's memory, which must outlive every handle. No strides: dense.
  static Tensor borrow(void* data, DType dtype, Shape shape, Shape strides = {}, Device device = {});
  /// Somebody else's memory, kept alive by `owner`.
  static Tensor share(std::shared_ptr<void> owner, void* data, DType dtype, Shape shape, Shape strides = {}, Device device = {});

  /// Host tensors of plain values.
  static Tensor of(std::span<const std::int64_t> values, Shape shape);
  static Tensor of(std::span<const std::int32_t> values, Shape shape);
  static Tensor of(std::span<const float> values, Shape shape);
  static Tensor of_bools(std::span<const std::uint8_t> values, Shape shape);
  static Tensor of(std::initializer_list<std::int64_t> values) {
    return of(std::span<const std::int64_t>(values.begin(), values.size()), {static_cast<std::int64_t>(values.size())});
  }

  bool defined() const { return defined_; }
  explicit operator bool() const { return defined_; }
  DType dtype() const { return dtype_; }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  std::int64_t size(std::int64_t axis) const { return shape_[static_cast<std::size_t>(axis)]; }
  std::int64_t stride(std::int64_t axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const;
  Device device() const { return device_; }

  std::byte* raw() const { return data_; }
  /// The elements as T; T must have the dtype's size.
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(data_);
  }

  /// Row-major without gaps.
  bool is_dense() const;
  /// A dense copy of the elements in new host memory.
  Tensor clone() const;
  /// True when no other handle shares this owned memory, or when it is borrowed (its owner gave it up).
  bool is_sole_owner() const;

  /// The sub-tensor at `i` of axis 0 (one axis fewer), sharing the memory.
  Tensor at(std::int64_t i) const;
  /// The same memory with another shape; dense tensors only.
  Tensor reshaped(Shape shape) const;
  /// Axis 0 cut to [begin, begin + count), sharing the memory.
  Tensor slice(std::int64_t begin, std::int64_t count) const;

  /// Element `indices` as a float64 or int64, widened exactly; for hosts only, for tests, printing and small tables.
  double number(std::span<const std::int64_t> indices) const;
  std::int64_t integer(std::span<const std::int64_t> indices) const;

  /// The ABI's view of this tensor; valid while this handle is.
  quire_tensor view() const;

 private:
  bool defined_ = false;
  DType dtype_ = DType::f32;
  Shape shape_;
  Shape strides_;
  std::byte* data_ = nullptr;
  Device device_;
  std::shared_ptr<void> owner_;
};

/// Strides of a row-major layout.
Shape dense_strides(std::span<const std::int64_t> shape);

/// What stands in the memory of one element: integers and bools as they are, floats widened exactly. Host memory.
std::int64_t read_integer(DType dtype, const std::byte* element);
double read_number(DType dtype, const std::byte* element);
/// Stores a number rounded once to nearest even (E5's saturation for fp8). Integers and bools take the value as it is.
void write_number(DType dtype, std::byte* element, double value);

/// Takes a DLPack tensor over; its deleter runs when the last handle goes. Raises invalid_argument (`dlpack`) for a dtype, lane count or
/// layout that Quire has not (then the caller still owns it).
Tensor from_dlpack(DLManagedTensor* managed);
/// A DLPack tensor that shares this memory and keeps it alive until its deleter is called.
DLManagedTensor* to_dlpack(const Tensor& tensor);

}  // namespace quire
