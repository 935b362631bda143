// NumPy's .npy files: one array behind a header that is a Python literal.
#include "npy.h"

#include "bytes.h"
#include "npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace quire::arrays {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;

// How elements are stored: `dtype` is nothing for untyped ones.
struct Elements {
  std::optional<DType> dtype;
  std::int64_t size = 0;
  bool swapped = false;
};

[[noreturn]] void reject_descr(std::string_view descr) {
  reject(
      "file", "npy dtype " + shown(descr),
      "|b1 |i1 |u1 and i2 i4 i8 f2 f4 f8 behind < or >, |V1 |V2 |V4 |V8 with a dtype named, <f1, "
      "bfloat16, float8_e4m3fn, float8_e5m2");
}

Elements elements_of(std::string_view descr) {
  if (descr == "bfloat16") return {DType::bf16, 2};
  if (descr == "float8_e4m3fn") return {DType::f8_e4m3fn, 1};
  if (descr == "float8_e5m2") return {DType::f8_e5m2, 1};
  if (descr.size() != 3 || std::string_view("<>|").find(descr[0]) == std::string_view::npos)
    reject_descr(descr);

  const char order = descr[0];
  const std::string_view type = descr.substr(1);
  // NumPy writes '|' where bytes have no order, and ml_dtypes writes '<V2', '<V1' and '<f1'.
  for (const auto& [name, size] : {std::pair{"V1", 1}, {"V2", 2}, {"V4", 4}, {"V8", 8}}) {
    if (type == name && order != '>') return {std::nullopt, size};
  }
  struct Named {
    std::string_view type;
    DType dtype;
  };
  // f1 is float8_e5m2 alone: the one 8-bit float that ml_dtypes gives the kind 'f'.
  constexpr std::array<Named, 10> named = {{{"b1", DType::boolean},
                                            {"i1", DType::i8},
                                            {"u1", DType::u8},
                                            {"i2", DType::i16},
                                            {"i4", DType::i32},
                                            {"i8", DType::i64},
                                            {"f1", DType::f8_e5m2},
                                            {"f2", DType::f16},
                                            {"f4", DType::f32},
                                            {"f8", DType::f64}}};
  for (const Named& entry : named) {
    if (type != entry.type) continue;
    const std::int64_t size = size_of(entry.dtype);
    if (size > 1 && order == '|') break;
    return {entry.dtype, size, size > 1 && order == '>'};
  }
  reject_descr(descr);
}

// The dtype that the caller gets; `as` names untyped elements and otherwise only agrees.
DType resolve(const Elements& elements, std::string_view descr, std::optional<DType> as) {
  if (elements.dtype) {
    if (as && *as != *elements.dtype) {
      reject("file",
             fmt::format("an array of {} (npy dtype {}) to read as {}", name(*elements.dtype),
                         shown(descr), name(*as)),
             fmt::format("{}, as nothing is converted", name(*elements.dtype)));
    }
    return *elements.dtype;
  }
  const std::string given =
      fmt::format("untyped elements of {} bytes (npy dtype {})", elements.size, shown(descr));
  if (!as) {
    reject("file", given + " and no dtype named",
           elements.size == 1   ? "a dtype named for them, such as f8_e4m3fn or f8_e5m2"
           : elements.size == 2 ? "a dtype named for them, such as bf16"
                                : "a dtype named for them");
  }
  if (size_of(*as) != elements.size) {
    reject("file", fmt::format("{} to read as {}", given, name(*as)),
           fmt::format("a dtype of {} bytes", elements.size));
  }
  return *as;
}

void swap_elements(Tensor& tensor) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  const std::size_t bytes = bytes_of(tensor).size();
  for (std::size_t i = 0; i < bytes; i += size)
    std::reverse(tensor.raw() + i, tensor.raw() + i + size);
}

// Column-major bytes as row-major ones: the same memory with the strides turned round, copied.
Tensor copy_fortran(DType dtype, const Shape& shape, Bytes data) {
  Shape reversed(shape.rbegin(), shape.rend());
  Shape strides = dense_strides(reversed);
  std::reverse(strides.begin(), strides.end());
  const Tensor stored = copy_dense(dtype, reversed, data);
  return Tensor::borrow(stored.raw(), dtype, shape, std::move(strides)).clone();
}

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "|b1";
    case DType::i8: return "|i1";
    case DType::u8: return "|u1";
    case DType::i16: return "<i2";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::f16: return "<f2";
    case DType::bf16: return "<V2";
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::f8_e4m3fn:
    case DType::f8_e5m2: return "|V1";
  }
  reject("file", "a dtype without a name", "the dtypes of the case format");
}

}  // namespace

Tensor read_npy(Bytes file, std::optional<DType> as) {
  if (file.size() < magic.size() + 2 || !text_of(file).starts_with(magic)) {
    reject("file", fmt::format("{} bytes without npy's magic number", file.size()), "an npy file");
  }
  const auto major = std::to_integer<int>(file[6]);
  const auto minor = std::to_integer<int>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    reject("file", fmt::format("npy version {}.{}", major, minor), "versions 1.0, 2.0 and 3.0");
  }
  const std::size_t begin = major == 1 ? 10 : 12;
  if (file.size() < begin)
    reject("file", fmt::format("an npy file of {} bytes", file.size()), "a whole header");
  const std::size_t length =
      major == 1 ? number_at<std::uint16_t>(file, 8) : number_at<std::uint32_t>(file, 8);
  if (length > file.size() - begin) {
    reject("file",
           fmt::format("an npy header of {} bytes with {} there", length, file.size() - begin),
           "a whole header");
  }
  const NpyHeader header = parse_npy_header(text_of(file.subspan(begin, length)));
  const Elements elements = elements_of(header.descr);
  const DType dtype = resolve(elements, header.descr, as);

  const Bytes data = file.subspan(begin + length);
  const std::uint64_t bytes = dense_bytes(dtype, header.shape);
  if (bytes != data.size()) {
    reject("file",
           fmt::format("an npy array {}{} with {} bytes behind its header", name(dtype),
                       to_string(header.shape), data.size()),
           fmt::format("{} bytes", bytes));
  }
  const bool is_turned = header.fortran_order && header.shape.size() > 1 && bytes > 0;
  Tensor tensor =
      is_turned ? copy_fortran(dtype, header.shape, data) : copy_dense(dtype, header.shape, data);
  if (elements.swapped) swap_elements(tensor);
  return tensor;
}

std::vector<std::byte> npy_head(DType dtype, const Shape& shape) {
  dense_bytes(dtype, shape);
  std::string header = npy_header_text(descr_of(dtype), shape);
  // As NumPy: a newline ends the header, and the data begin at the next multiple of 64.
  const std::size_t unpadded = magic.size() + 4 + header.size() + 1;
  header.append(alignment - unpadded % alignment, ' ');
  header += '\n';

  std::vector<std::byte> head = with_capacity(unpadded + alignment);
  append_text(head, magic);
  append_number<std::uint8_t>(head, 1);
  append_number<std::uint8_t>(head, 0);
  append_number(head, static_cast<std::uint16_t>(header.size()));
  append_text(head, header);
  return head;
}

std::vector<std::byte> write_npy(const Tensor& tensor) {
  const Tensor dense = host_dense(tensor);
  const std::vector<std::byte> head = npy_head(dense.dtype(), dense.shape());
  std::vector<std::byte> file = with_capacity(head.size() + bytes_of(dense).size());
  append_bytes(file, head);
  append_bytes(file, bytes_of(dense));
  return file;
}

}  // namespace quire::arrays
