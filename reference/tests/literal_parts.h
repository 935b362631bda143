// The pieces that the literal implementation's files share: tensors, a case's fields, the index.
#ifndef QUIRE_REFERENCE_TESTS_LITERAL_PARTS_H
#define QUIRE_REFERENCE_TESTS_LITERAL_PARTS_H

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace quire_literal {

using Json = nlohmann::json;
using Int = std::int64_t;
// Positions of block columns are formed without overflow: j * m + m - 1 with any int64 m.
__extension__ typedef __int128 Wide;

// An invalid argument; `code` is another word only for what this implementation does not do.
struct Failure {
  std::string code;
  std::string argument;
  std::string message;
};
[[noreturn]] void reject(const std::string& argument, const std::string& message);
[[noreturn]] void unsupported(const std::string& argument, const std::string& message);

// ---- tensors -----------------------------------------------------------------------------------

struct Tensor {
  std::string dtype;
  std::vector<Int> shape;
  std::vector<double> real;  // the elements of a floating dtype
  std::vector<Int> integer;  // the elements of a bool or integer dtype
  std::optional<Int> padded;  // the stride of axis 0 where a case gives one

  Int rank() const { return static_cast<Int>(shape.size()); }
  Int count() const;
  Int row_elements() const;  // of one entry of axis 0
  static bool is_integer_dtype(const std::string& dtype);
};
using Shared = std::shared_ptr<Tensor>;

bool known_dtype(const std::string& dtype);
bool wide_float(const std::string& dtype);   // f16 bf16 f32 f64: what D and E compute from
bool state_float(const std::string& dtype);  // f32 bf16 f16 and both fp8: what a state is stored in
double round_to(const std::string& dtype, long double value);
Tensor zeros(const std::string& dtype, const std::vector<Int>& shape);
Tensor int_tensor(const std::string& dtype, const std::vector<Int>& shape,
                  const std::vector<Int>& values);
Int offset(const Tensor& tensor, std::initializer_list<Int> at);
double real_at(const Tensor& tensor, std::initializer_list<Int> at);
Int int_at(const Tensor& tensor, std::initializer_list<Int> at);
void copy_row(const Tensor& from, Int from_row, Tensor& to, Int to_row, Int width);
Tensor parse_tensor(const Json& text, const std::string& field, const std::string& list_dtype);
Json print_tensor(const Tensor& tensor);

// ---- a case's fields and result ----------------------------------------------------------------

using Tensors = std::map<std::string, Shared>;
using Program = std::map<std::string, Tensors>;  // the tensors of each named step

struct Result {
  Json json = Json::object();
  Tensors tensors;
  void add(const std::string& name, const Shared& tensor);
  void add(const std::string& name, const Tensor& tensor);
};

class Fields {
 public:
  Fields(const Json& object, const Program& program) : object_(object), program_(program) {}
  // With these tensors in the place of the fields that they are named after.
  Fields(const Json& object, const Program& program, const Tensors& read)
      : object_(object), program_(program), read_(read) {}
  bool has(const std::string& name) const { return object_.contains(name); }
  const Json& json(const std::string& name) const;
  Shared tensor(const std::string& name);           // a missing one is rejected
  Shared tensor(const std::string& name, const std::string& list_dtype);
  Shared optional_tensor(const std::string& name);  // null when absent
  double number(const std::string& name) const;
  bool flag(const std::string& name, bool when_absent) const;
  Int integer(const std::string& name) const;
  // One dimension, int32 or int64, `count` entries (any count when negative).
  std::vector<Int> int_list(const std::string& name, Int count);
  // A tensor written at a place that is not a field of its own, as those of an index are.
  Shared parse(const Json& text, const std::string& field, const std::string& list_dtype);
  const Tensors& read() const { return read_; }

 private:
  const Json& object_;
  const Program& program_;
  Tensors read_;
  std::vector<std::string> open_;  // names being resolved, so that a circle of names is found
};

Int json_integer(const Json& text, const std::string& field);
void only_keys(const Json& object, const std::string& field, const std::vector<std::string>& keys);

// ---- the index ---------------------------------------------------------------------------------

struct BlockTable {
  Int size;
  Tensor blocks;
};

struct Index {
  std::string kind;  // "tabled", "whole" or "packed"
  Tensor pos;        // [B,S]
  std::optional<Tensor> table, row, columns, slots, sees;
  std::vector<BlockTable> every;
  Int reads = 1;
  std::optional<Int> window;

  Int lanes() const { return pos.shape[0]; }
  Int seq() const { return pos.shape[1]; }
  bool tabled() const { return kind == "tabled"; }
  bool draft() const { return slots.has_value(); }
};

Index parse_index(Fields& fields);
Tensor positions(const Index& x);

Int lane_row(const Index& x, Int b);
bool real_token(const Index& x, Int b, Int i);
Int position(const Index& x, Int b, Int i);
const Tensor* table_read(const Index& x);
Int table_width(const Index& x);
Wide column_position(const Index& x, Int j);
Int column_slot(const Index& x, Int b, Int j);
std::optional<Int> closing_token(const Index& x, Int b, Int j);
bool sees_column(const Index& x, Int b, Int i, Int j);
Int entries(const Index& x);
Int entry_column(const Index& x, Int b, Int i, Int c);
bool sees_entry(const Index& x, Int b, Int i, Int c);
Tensor mask(const Index& x);
Int target(const Index& x, Int b, Int i);

// ---- the gated delta rule ----------------------------------------------------------------------

// All of a call's tokens in one line: token n, whatever the leading axes of q were.
struct Gated {
  Tensor q, k, v;
  std::optional<Tensor> g, beta;
  std::vector<double> raw_g, raw_beta;  // E3, when the gates come raw
  Int tokens = 0, q_heads = 0, k_heads = 0, v_heads = 0, heads = 0, key = 0, value = 0;
  double scale = 1;
  bool l2norm = false;
};

using State = std::vector<double>;  // [H,V,K] of one sequence

Gated read_gated(Fields& fields, Int leading_axes, bool zero_scale_is_default, bool l2norm);
void gated_token(const Gated& in, Int n, State& state, std::vector<double>& out);
Tensor gated_output(const Gated& in, const std::vector<double>& out);
void require_state(const Tensor& pool, const Gated& in, const std::string& field);
bool row_in_pool(const Tensor& pool, Int row);
State read_state(const Shared& pool, Int row, const Gated& in);
void store_state(const Shared& pool, Int row, const State& state);

struct Prefill {
  std::vector<Int> cu_seqlens;
  Shared initial, output, checkpoints;  // null when absent
  std::optional<std::vector<Int>> read_rows, write_rows, checkpoint_rows, prefix;
  std::vector<Int> checkpoint_starts;
  Int interval = 0;
  bool store_final = false;
};
Tensor run_prefill(const Gated& in, const Prefill& how);
Tensor run_decode(const Gated& in, const Shared& pool, const std::vector<Int>& read_rows,
                  const std::vector<Int>& write_rows);
std::vector<Int> read_cu_seqlens(Fields& fields, Int tokens);
bool any_raw_gate(const Fields& fields);
void read_raw_gates(Fields& fields, Gated& in);

// ---- ops and programs --------------------------------------------------------------------------

struct Op {
  const char* name;
  std::vector<std::string> required;
  std::vector<std::string> optional;
  void (*run)(Fields&, Result&);
};

// The op that a case or step names; rejected when a field is missing, or is neither its own nor of `others`.
const Op& named_op(const Json& object, const std::vector<std::string>& others);
void require_version(const Json& object, const std::string& name);
// The result of what `run` gives, or of the failure that it raises.
Json result_of(const Json& object, const std::function<Json()>& run);
Json run_program(const Json& object);

// ---- the ops -----------------------------------------------------------------------------------

void op_index(Fields& fields, Result& result);
void op_positions(Fields& fields, Result& result);
void op_mask(Fields& fields, Result& result);
void op_extend(Fields& fields, Result& result);
void op_attend(Fields& fields, Result& result);
void op_gdn_prefill(Fields& fields, Result& result);
void op_gdn_decode(Fields& fields, Result& result);
void op_gdn_prefill_slots(Fields& fields, Result& result);
void op_gdn_decode_slots(Fields& fields, Result& result);
void op_gdn_prefill_paged(Fields& fields, Result& result);
void op_gdn_decode_paged(Fields& fields, Result& result);
void op_gdn_verify(Fields& fields, Result& result);
void op_page_table(Fields& fields, Result& result);
void op_check(Fields& fields, Result& result);

}  // namespace quire_literal

#endif  // QUIRE_REFERENCE_TESTS_LITERAL_PARTS_H
