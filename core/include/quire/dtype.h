// Element types: their names, sizes and kinds.
#pragma once

#include <quire/backend.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

/// Numbered as in the C ABI.
enum class DType : std::int32_t {
  boolean = QUIRE_BOOL,
  i8 = QUIRE_I8,
  u8 = QUIRE_U8,
  i16 = QUIRE_I16,
  i32 = QUIRE_I32,
  i64 = QUIRE_I64,
  f16 = QUIRE_F16,
  bf16 = QUIRE_BF16,
  f32 = QUIRE_F32,
  f64 = QUIRE_F64,
  f8_e4m3fn = QUIRE_F8_E4M3FN,
  f8_e5m2 = QUIRE_F8_E5M2,
};

/// "bool", "i8", ... as in the case format.
std::string_view name(DType dtype);
/// The dtype of that name, or nothing.
std::optional<DType> dtype_named(std::string_view name);
/// Bytes of one element.
std::int64_t size_of(DType dtype);

/// Signed or unsigned integers; bool is none.
bool is_integer(DType dtype);
/// i32 or i64: what the integer tensors of laws E and F may be.
bool is_index_integer(DType dtype);
/// f16, bf16, f32, f64: what attention and the gated delta rule take (D5).
bool is_compute_float(DType dtype);
/// f32, bf16, f16, f8_e4m3fn, f8_e5m2: what a recurrent state may be (E5).
bool is_state(DType dtype);
/// Any of the six floating types.
bool is_float(DType dtype);

}  // namespace quire
