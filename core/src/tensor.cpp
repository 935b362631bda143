// Tensors: sizes in 64 bits, memory, views and single elements.
#include <quire/convert.h>
#include <quire/tensor.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

namespace quire {

namespace {

constexpr std::int64_t alignment = 64;

std::shared_ptr<void> allocate(std::int64_t bytes, std::string_view argument) {
  const auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
  void* memory = ::operator new(size, std::align_val_t{alignment}, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorCode::unavailable, std::string(argument), fmt::format("{}: no memory for {} bytes", argument, bytes));
  }
  return {memory, [](void* p) { ::operator delete(p, std::align_val_t{alignment}); }};
}

// QUIRE_MAX_MEMORY as bytes; nothing where it is unset or no size.
std::optional<std::int64_t> memory_from_environment() {
  const char* text = std::getenv("QUIRE_MAX_MEMORY");
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  double unit = 1;
  switch (*end) {
    case 'K': case 'k': unit = 0x1p10; ++end; break;
    case 'M': case 'm': unit = 0x1p20; ++end; break;
    case 'G': case 'g': unit = 0x1p30; ++end; break;
    case 'T': case 't': unit = 0x1p40; ++end; break;
    default: break;
  }
  if (end == text || *end != '\0' || !(number > 0) || number * unit > 0x1p62) {
    reject("QUIRE_MAX_MEMORY", fmt::format("\"{}\"", text), "a positive number of bytes, with K, M, G or T behind it if you like");
  }
  return static_cast<std::int64_t>(number * unit);
}

template <typename T>
T load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* element, T value) {
  std::memcpy(element, &value, sizeof value);
}

}  // namespace

std::string to_string(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::int64_t count_elements(std::span<const std::int64_t> shape, std::string_view argument) {
  std::int64_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (const std::int64_t axis : shape) {
    if (axis < 0) reject(argument, "shape " + to_string(shape), "axes of 0 or more");
    if (axis == 0) {
      empty = true;
    } else {
      overflow |= __builtin_mul_overflow(count, axis, &count);
    }
  }
  // Empty axes aside, so that the strides of an empty tensor fit too.
  if (overflow) reject(argument, "shape " + to_string(shape), "fewer than 2^63 elements");
  return empty ? 0 : count;
}

std::int64_t allowed_bytes() {
  if (const auto bytes = memory_from_environment()) return *bytes;
  static const std::int64_t machine = [] {
    const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
    const std::int64_t page = sysconf(_SC_PAGE_SIZE);
    std::int64_t bytes = 0;
    if (pages <= 0 || page <= 0 || __builtin_mul_overflow(pages, page, &bytes)) return std::numeric_limits<std::int64_t>::max();
    return bytes / 2;
  }();
  return machine;
}

std::int64_t checked_bytes(DType dtype, std::span<const std::int64_t> shape, std::string_view argument) {
  const std::int64_t count = count_elements(shape, argument);
  std::int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(count, size_of(dtype), &bytes);
  if (overflow || bytes > allowed_bytes()) {
    reject(argument, fmt::format("a tensor {}{} of {} bytes", name(dtype), to_string(shape), overflow ? "over 2^63" : fmt::to_string(bytes)),
           fmt::format("at most {} bytes (QUIRE_MAX_MEMORY, or half of this machine's memory)", allowed_bytes()));
  }
  return bytes;
}

Shape dense_strides(std::span<const std::int64_t> shape) {
  Shape strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis] > 0 ? shape[axis] : 1;
  }
  return strides;
}

Tensor Tensor::empty(DType dtype, Shape shape, std::string_view argument) {
  auto memory = allocate(checked_bytes(dtype, shape, argument), argument);
  void* data = memory.get();
  return share(std::move(memory), data, dtype, std::move(shape));
}

Tensor Tensor::zeros(DType dtype, Shape shape, std::string_view argument) {
  Tensor tensor = empty(dtype, std::move(shape), argument);
  std::memset(tensor.raw(), 0, static_cast<std::size_t>(tensor.elements() * size_of(dtype)));
  return tensor;
}

Tensor Tensor::empty_padded(DType dtype, Shape shape, std::int64_t row_stride, std::string_view argument) {
  if (shape.empty()) reject(argument, "a tensor without axes", "a tensor with an axis 0");
  const std::int64_t row = count_elements(std::span(shape).subspan(1), argument);
  if (row_stride < row || row_stride < 1) {
    reject(argument, fmt::format("row stride {}", row_stride), fmt::format("at least the {} elements of a row", row));
  }
  auto memory = allocate(checked_bytes(dtype, std::array{shape[0], row_stride}, argument), argument);
  void* data = memory.get();
  Shape strides = dense_strides(shape);
  strides[0] = row_stride;
  return share(std::move(memory), data, dtype, std::move(shape), std::move(strides));
}

Tensor Tensor::borrow(void* data, DType dtype, Shape shape, Shape strides, Device device) {
  return share(nullptr, data, dtype, std::move(shape), std::move(strides), device);
}

Tensor Tensor::share(std::shared_ptr<void> owner, void* data, DType dtype, Shape shape, Shape strides, Device device) {
  count_elements(shape, "shape");
  if (strides.empty()) strides = dense_strides(shape);
  if (strides.size() != shape.size()) reject("strides", to_string(strides), fmt::format("{} of them", shape.size()));
  Tensor tensor;
  tensor.defined_ = true;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.strides_ = std::move(strides);
  tensor.data_ = static_cast<std::byte*>(data);
  tensor.device_ = device;
  tensor.owner_ = std::move(owner);
  return tensor;
}

namespace {

template <typename T>
Tensor copy_of(DType dtype, std::span<const T> values, Shape shape) {
  Tensor tensor = Tensor::empty(dtype, std::move(shape));
  if (tensor.elements() != static_cast<std::int64_t>(values.size())) {
    reject("values", fmt::format("{} of them", values.size()), fmt::format("{} for shape {}", tensor.elements(), to_string(tensor.shape())));
  }
  if (!values.empty()) std::memcpy(tensor.raw(), values.data(), values.size_bytes());
  return tensor;
}

}  // namespace

Tensor Tensor::of(std::span<const std::int64_t> values, Shape shape) { return copy_of(DType::i64, values, std::move(shape)); }
Tensor Tensor::of(std::span<const std::int32_t> values, Shape shape) { return copy_of(DType::i32, values, std::move(shape)); }
Tensor Tensor::of(std::span<const float> values, Shape shape) { return copy_of(DType::f32, values, std::move(shape)); }
Tensor Tensor::of_bools(std::span<const std::uint8_t> values, Shape shape) { return copy_of(DType::boolean, values, std::move(shape)); }

std::int64_t Tensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t axis : shape_) count *= axis;
  return count;
}

bool Tensor::is_dense() const {
  std::int64_t step = 1;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    if (shape_[axis] == 0) return true;
    if (shape_[axis] != 1 && strides_[axis] != step) return false;
    step *= shape_[axis];
  }
  return true;
}

namespace {

void copy_axes(const Tensor& from, std::size_t axis, const std::byte* source, std::byte*& target) {
  const std::int64_t size = size_of(from.dtype());
  if (axis == from.shape().size()) {
    std::memcpy(target, source, static_cast<std::size_t>(size));
    target += size;
    return;
  }
  const std::int64_t count = from.shape()[axis];
  const std::int64_t step = from.strides()[axis];
  if (axis + 1 == from.shape().size() && step == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(count * size));
    target += count * size;
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) copy_axes(from, axis + 1, source + i * step * size, target);
}

}  // namespace

Tensor Tensor::clone() const {
  if (!defined_) return {};
  if (!device_.is_host()) throw Error(ErrorCode::unsupported, "device", "device: only host tensors are cloned here");
  Tensor copy = empty(dtype_, shape_);
  std::byte* target = copy.raw();
  if (elements() > 0) copy_axes(*this, 0, data_, target);
  return copy;
}

bool Tensor::is_sole_owner() const { return owner_ == nullptr || owner_.use_count() == 1; }

Tensor Tensor::at(std::int64_t i) const {
  Tensor part = slice(i, 1);
  part.shape_.erase(part.shape_.begin());
  part.strides_.erase(part.strides_.begin());
  return part;
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t count) const {
  if (rank() < 1) reject("slice", "a tensor without axes", "a tensor with an axis 0");
  if (begin < 0 || count < 0 || begin > size(0) || count > size(0) - begin) {
    reject("slice", fmt::format("[{}, {} + {})", begin, begin, count), fmt::format("a part of [0, {})", size(0)));
  }
  Tensor part = *this;
  part.shape_[0] = count;
  if (count > 0) part.data_ += begin * strides_[0] * size_of(dtype_);
  return part;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (!is_dense() || count_elements(shape, "shape") != elements()) {
    reject("shape", to_string(shape), fmt::format("the {} elements of a dense tensor", elements()));
  }
  Tensor same = *this;
  same.strides_ = dense_strides(shape);
  same.shape_ = std::move(shape);
  return same;
}

namespace {

const std::byte* element_at(const Tensor& tensor, std::span<const std::int64_t> indices) {
  if (indices.size() != tensor.shape().size()) reject("indices", to_string(indices), fmt::format("{} of them", tensor.rank()));
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    if (indices[axis] < 0 || indices[axis] >= tensor.shape()[axis]) {
      reject("indices", to_string(indices), "inside shape " + to_string(tensor.shape()));
    }
    offset += indices[axis] * tensor.strides()[axis];
  }
  return tensor.raw() + offset * size_of(tensor.dtype());
}

}  // namespace

double Tensor::number(std::span<const std::int64_t> indices) const { return read_number(dtype_, element_at(*this, indices)); }
std::int64_t Tensor::integer(std::span<const std::int64_t> indices) const { return read_integer(dtype_, element_at(*this, indices)); }

quire_tensor Tensor::view() const {
  return {sizeof(quire_tensor), data_, shape_.data(), strides_.data(), static_cast<std::int32_t>(rank()),
          static_cast<quire_dtype>(dtype_), quire_device{device_.type, device_.id}};
}

std::int64_t read_integer(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::boolean: return load<std::uint8_t>(element) != 0 ? 1 : 0;
    case DType::i8: return load<std::int8_t>(element);
    case DType::u8: return load<std::uint8_t>(element);
    case DType::i16: return load<std::int16_t>(element);
    case DType::i32: return load<std::int32_t>(element);
    case DType::i64: return load<std::int64_t>(element);
    default: return static_cast<std::int64_t>(read_number(dtype, element));
  }
}

double read_number(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::f16: return from_f16(load<std::uint16_t>(element));
    case DType::bf16: return from_bf16(load<std::uint16_t>(element));
    case DType::f32: return static_cast<double>(load<float>(element));
    case DType::f64: return load<double>(element);
    case DType::f8_e4m3fn: return from_f8_e4m3fn(load<std::uint8_t>(element));
    case DType::f8_e5m2: return from_f8_e5m2(load<std::uint8_t>(element));
    default: return static_cast<double>(read_integer(dtype, element));
  }
}

void write_number(DType dtype, std::byte* element, double value) {
  switch (dtype) {
    case DType::boolean: store<std::uint8_t>(element, value != 0 ? 1 : 0); break;
    case DType::i8: store(element, static_cast<std::int8_t>(value)); break;
    case DType::u8: store(element, static_cast<std::uint8_t>(value)); break;
    case DType::i16: store(element, static_cast<std::int16_t>(value)); break;
    case DType::i32: store(element, static_cast<std::int32_t>(value)); break;
    case DType::i64: store(element, static_cast<std::int64_t>(value)); break;
    case DType::f16: store(element, to_f16(value)); break;
    case DType::bf16: store(element, to_bf16(value)); break;
    case DType::f32: store(element, to_f32(value)); break;
    case DType::f64: store(element, value); break;
    case DType::f8_e4m3fn: store(element, to_f8_e4m3fn(value)); break;
    case DType::f8_e5m2: store(element, to_f8_e5m2(value)); break;
  }
}

}  // namespace quire
