/* Tensors: the addresses of rows, their numbers, copies bit for bit. Offsets are formed in 64 bits: pools have more than 2^31 elements. */
#include "template.h"

#include <string.h>

size_t template_size_of(quire_dtype dtype) {
  static const unsigned char sizes[QUIRE_DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
  return sizes[dtype];
}

const char* template_dtype_name(quire_dtype dtype) {
  static const char* const names[QUIRE_DTYPE_COUNT] = {"bool", "i8",   "u8",  "i16", "i32",        "i64",
                                                       "f16",  "bf16", "f32", "f64", "f8_e4m3fn", "f8_e5m2"};
  return dtype >= 0 && dtype < QUIRE_DTYPE_COUNT ? names[dtype] : "unknown";
}

static char* address(const quire_tensor* tensor, int64_t elements) {
  return (char*)tensor->data + elements * (int64_t)template_size_of(tensor->dtype);
}

char* template_at(const quire_tensor* tensor, int64_t i) { return address(tensor, i * tensor->strides[0]); }
char* template_at2(const quire_tensor* tensor, int64_t i, int64_t j) {
  return address(tensor, i * tensor->strides[0] + j * tensor->strides[1]);
}
char* template_at3(const quire_tensor* tensor, int64_t i, int64_t j, int64_t k) {
  return address(tensor, i * tensor->strides[0] + j * tensor->strides[1] + k * tensor->strides[2]);
}

int64_t template_integer(const quire_tensor* tensor, int64_t i) {
  const void* at = template_at(tensor, i);
  return tensor->dtype == QUIRE_I64 ? *(const int64_t*)at : *(const int32_t*)at;
}
int64_t template_integer2(const quire_tensor* tensor, int64_t i, int64_t j) {
  return *(const int64_t*)(const void*)template_at2(tensor, i, j);
}
int64_t template_integer3(const quire_tensor* tensor, int64_t i, int64_t j, int64_t k) {
  return *(const int64_t*)(const void*)template_at3(tensor, i, j, k);
}

/* The one place where dtypes of floats differ. Another one is a case in each of these three, and a bit in `describe`. */
bool template_is_float(quire_dtype dtype) { return dtype == QUIRE_F32 || dtype == QUIRE_BF16; }

float template_float(quire_dtype dtype, const char* at, int64_t n) {
  float value = 0;
  if (dtype == QUIRE_F32) return ((const float*)(const void*)at)[n];
  const uint32_t bits = (uint32_t)((const uint16_t*)(const void*)at)[n] << 16; /* bf16 is the upper half of a float32 */
  memcpy(&value, &bits, sizeof value);
  return value;
}

void template_put_float(quire_dtype dtype, char* at, int64_t n, float value) {
  uint32_t bits = 0;
  if (dtype == QUIRE_F32) {
    ((float*)(void*)at)[n] = value;
    return;
  }
  memcpy(&bits, &value, sizeof bits);
  const uint32_t kept = bits >> 16;
  const uint32_t rounded = (bits + 0x7FFFU + (kept & 1U)) >> 16; /* past the largest number comes infinity */
  ((uint16_t*)(void*)at)[n] = (uint16_t)(value != value ? kept | 0x40U : rounded); /* a NaN stays one */
}

bool template_row_is_empty(const quire_tensor* tensor, int32_t axis) {
  for (; axis < tensor->rank; ++axis) {
    if (tensor->shape[axis] == 0) return true;
  }
  return false;
}

/* The bytes that stand side by side from `axis` on, where those are all of the row; else 0. A row without axes is one element. */
static size_t dense_bytes(const quire_tensor* tensor, int32_t axis) {
  int64_t elements = 1;
  for (int32_t a = tensor->rank - 1; a >= axis; --a) {
    if (tensor->shape[a] != 1 && tensor->strides[a] != elements) return 0;
    elements *= tensor->shape[a];
  }
  return (size_t)elements * template_size_of(tensor->dtype);
}

static int64_t step_bytes(const quire_tensor* tensor, int32_t axis) {
  return tensor->strides[axis] * (int64_t)template_size_of(tensor->dtype);
}

void template_copy_row(const quire_tensor* from_tensor, int32_t from_axis, const char* from, const quire_tensor* to_tensor, int32_t to_axis,
                       char* to) {
  if (template_row_is_empty(to_tensor, to_axis)) return;
  const size_t bytes = dense_bytes(to_tensor, to_axis);
  if (bytes > 0 && dense_bytes(from_tensor, from_axis) == bytes) {
    memcpy(to, from, bytes);
    return;
  }
  for (int64_t i = 0; i < to_tensor->shape[to_axis]; ++i) {
    template_copy_row(from_tensor, from_axis + 1, from + i * step_bytes(from_tensor, from_axis), to_tensor, to_axis + 1,
                      to + i * step_bytes(to_tensor, to_axis));
  }
}

void template_clear_row(const quire_tensor* tensor, int32_t axis, char* row) {
  if (template_row_is_empty(tensor, axis)) return;
  const size_t bytes = dense_bytes(tensor, axis);
  if (bytes > 0) {
    memset(row, 0, bytes);
    return;
  }
  for (int64_t i = 0; i < tensor->shape[axis]; ++i) template_clear_row(tensor, axis + 1, row + i * step_bytes(tensor, axis));
}
