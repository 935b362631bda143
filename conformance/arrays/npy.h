// NumPy's .npy files: one array behind a header that is a Python literal.
#pragma once

#include <quire/tensor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace quire::arrays {

/// The array of an .npy file (versions 1.0, 2.0, 3.0) as a new dense host tensor. Big-endian
/// numbers are swapped and Fortran order is copied to row-major.
///
/// dtypes: |b1 |i1 |u1 i2 i4 i8 f2 f4 f8, f1 (ml_dtypes' float8_e5m2), and the names bfloat16,
/// float8_e4m3fn, float8_e5m2. Untyped elements (V1 V2 V4 V8: how ml_dtypes writes bf16 and
/// f8_e4m3fn) are read as `as` says, which must have their size; for all other arrays `as` may only
/// repeat the dtype. Nothing is ever converted.
///
/// Raises invalid_argument (`file`) for whatever else the bytes hold, bytes behind the array
/// included. Source: numpy/lib/format.py.
Tensor read_npy(std::span<const std::byte> file, std::optional<DType> as = {});

/// The file that numpy.save writes for this tensor: bf16 as '<V2', both fp8 types as '|V1'.
/// Raises invalid_argument (`file`) for no tensor, a device tensor, or one of more than 64 axes.
std::vector<std::byte> write_npy(const Tensor& tensor);

/// What stands before the elements in that file. Raises as write_npy.
std::vector<std::byte> npy_head(DType dtype, const Shape& shape);

}  // namespace quire::arrays
