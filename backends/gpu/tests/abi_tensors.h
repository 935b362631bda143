// Tensors at the ABI as the tests of planning need them: shapes and strides, and memory that nobody may read.
#pragma once

#include <quire/backend.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace quire::gpu::test {

/// An address that can't be read: planning looks at no data.
inline void* nowhere(std::uintptr_t offset = 0) { return reinterpret_cast<void*>(std::uintptr_t{4096} + offset); }

/// Makes tensors and keeps them.
class AbiTensors {
 public:
  const quire_tensor* dense(quire_dtype dtype, std::vector<std::int64_t> shape, void* data = nowhere()) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides[axis] = step;
      if (__builtin_mul_overflow(step, shape[axis] > 0 ? shape[axis] : 1, &step)) step = 1;  // of sizes that no memory has
    }
    return with_strides(dtype, std::move(shape), std::move(strides), data);
  }
  const quire_tensor* with_strides(quire_dtype dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                                   void* data = nowhere()) {
    const auto& kept_shape = numbers_.emplace_back(std::move(shape));
    const auto& kept_strides = numbers_.emplace_back(std::move(strides));
    return &tensors_.emplace_back(quire_tensor{sizeof(quire_tensor),
                                               data,
                                               kept_shape.data(),
                                               kept_strides.data(),
                                               static_cast<std::int32_t>(kept_shape.size()),
                                               dtype,
                                               {QUIRE_DEVICE_CPU, 0}});
  }
  /// A draft or a plain index of `rows` rows and `columns` columns.
  const quire_index* index(std::int64_t batch, std::int64_t seq, std::int64_t rows, std::int64_t columns, bool is_draft = false) {
    quire_index& made = indices_.emplace_back();
    made.struct_size = sizeof made;
    made.kind = QUIRE_INDEX_TABLED;
    made.pos = dense(QUIRE_I64, {batch, seq});
    made.table = dense(QUIRE_I64, {rows, columns});
    made.reads = 1;
    if (is_draft) {
      made.slots = dense(QUIRE_I64, {batch, seq});
      made.sees = dense(QUIRE_BOOL, {batch, seq, seq});
    }
    return &made;
  }

 private:
  std::deque<std::vector<std::int64_t>> numbers_;
  std::deque<quire_tensor> tensors_;
  std::deque<quire_index> indices_;
};

}  // namespace quire::gpu::test
