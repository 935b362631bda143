// A call at the ABI as a value: an op with a copy of its args, whose tensors can be listed and put elsewhere.
#pragma once

#include <quire/backend.h>

#include <cstdint>
#include <deque>
#include <string_view>
#include <variant>
#include <vector>

namespace quire {

/// What an op does with a tensor: reads it, writes every element of it, or reads and changes some.
enum class TensorRole { read, write, update };

/// One tensor of a call. `name` is the args struct's field; the index's tensors are "index.pos" and so on.
struct CallTensor {
  std::string_view name;
  TensorRole role;
  quire_tensor* tensor;  ///< the call's own copy
};

/// Copies the args struct, its index, and all shapes and strides; the tensors' memory stays the caller's until `tensors()` are pointed
/// elsewhere. Absent tensors are absent here too. In the order of the structs' fields, the index first.
class Call {
 public:
  /// `args` is the op's struct, of this header's version.
  Call(quire_op op, const void* args);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  quire_op op() const { return op_; }
  const void* args() const;
  const std::vector<CallTensor>& tensors() const { return tensors_; }
  /// The tensor of that name, or null.
  const quire_tensor* tensor(std::string_view name) const;
  /// The index of an op that has one, or null.
  const quire_index* index() const { return has_index_ ? &index_ : nullptr; }
  /// The args, to be changed.
  template <typename Args>
  Args& as() {
    return std::get<Args>(args_);
  }
  quire_index& changeable_index() { return index_; }

 private:
  void take(std::string_view name, TensorRole role, const quire_tensor*& field);
  void take_index(const quire_index*& field);
  void take_all(quire_positions_args& args);
  void take_all(quire_mask_args& args);
  void take_all(quire_advance_args& args);
  void take_all(quire_extend_args& args);
  void take_all(quire_attend_args& args);
  void take_all(quire_gdn_prefill_args& args);
  void take_all(quire_gdn_decode_args& args);
  void take_all(quire_gdn_verify_args& args);
  void take_all(quire_gdn_slots_args& args);

  // Args that share a struct are told apart by the op.
  using Args = std::variant<quire_positions_args, quire_mask_args, quire_advance_args, quire_extend_args, quire_attend_args,
                            quire_gdn_prefill_args, quire_gdn_decode_args, quire_gdn_verify_args, quire_gdn_slots_args>;
  static Args copy_args(quire_op op, const void* args);

  quire_op op_;
  Args args_;
  bool has_index_ = false;
  quire_index index_{};
  std::vector<quire_block_table> block_tables_;
  std::deque<quire_tensor> copies_;                 // addresses stay
  std::deque<std::vector<std::int64_t>> numbers_;  // shapes and strides
  std::vector<CallTensor> tensors_;
};

}  // namespace quire
