// The header of an .npy file: its Python literal, read strictly.
#pragma once

#include <quire/tensor.h>

#include <string>
#include <string_view>

namespace quire::arrays {

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

/// The three entries of a dict such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
/// Each must be there once and nothing else; blanks may stand around. Raises invalid_argument
/// (`file`).
NpyHeader parse_npy_header(std::string_view text);

/// The same text as NumPy writes it, without the padding behind it. The tuple has NumPy's blanks
/// that let axis 0 grow in place.
std::string npy_header_text(std::string_view descr, const Shape& shape);

}  // namespace quire::arrays
