// What the literal implementation's extend and attend share: where a column's entry lies.
#ifndef QUIRE_REFERENCE_TESTS_LITERAL_EXTEND_H
#define QUIRE_REFERENCE_TESTS_LITERAL_EXTEND_H

#include "literal_parts.h"

namespace quire_literal {

// A column's entry is in a slot of the pool, is a token of the call, or is not there at all.
enum class From { slot, token, nothing };
struct Source {
  From where;
  Int place;
};
Source column_source(const Index& x, Int b, Int j, Int slots);
Int row_width(const Tensor& tensor, std::size_t from_axis);
void store(const Index& x, const Tensor& values, Tensor& pool);
Tensor extend(const Index& x, const Tensor& values, Tensor* pool);

}  // namespace quire_literal

#endif  // QUIRE_REFERENCE_TESTS_LITERAL_EXTEND_H
