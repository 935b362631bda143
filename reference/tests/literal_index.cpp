// The literal implementation of A: building an index, and its positions.
#include <algorithm>

#include "literal_parts.h"

namespace quire_literal {

namespace {

// An index tensor's integers are int64 (a nested list always is).
Tensor index_tensor(Fields& fields, const Json& text, const std::string& field, Int rank,
                    const std::string& dtype = "i64") {
  Tensor tensor = *fields.parse(text, field, dtype);
  if (tensor.dtype != dtype) reject(field, "not " + dtype);
  if (tensor.rank() != rank) reject(field, "wrong number of axes");
  return tensor;
}

void require_shape(const Tensor& tensor, const std::vector<Int>& shape, const std::string& field) {
  if (tensor.shape != shape) reject(field, "wrong shape");
}

const Json& required(const Json& object, const std::string& name) {
  if (!object.contains(name)) reject(name, "missing");
  return object.at(name);
}

// A3: a list of pairs (m, blocks[R,C_m]), m >= 2, no m twice.
void require_block_size(Int m, const std::vector<BlockTable>& before) {
  if (m < 2) reject("every", "a block size below 2");
  for (const BlockTable& other : before) {
    if (other.size == m) reject("every", "a block size twice");
  }
}

// A1: make(pos[B,S], table[R,C], row[B]?, every?); without row, R == B.
Index make(Fields& fields, const Json& text) {
  only_keys(text, "index", {"pos", "table", "row", "every", "then"});
  Index x;
  x.kind = "tabled";
  x.pos = index_tensor(fields, required(text, "pos"), "pos", 2);
  if (x.pos.count() == 0) reject("pos", "an empty axis");
  x.table = index_tensor(fields, required(text, "table"), "table", 2);
  if (x.table->count() == 0) reject("table", "an empty axis");
  const Int rows = x.table->shape[0];
  if (text.contains("row")) {
    x.row = index_tensor(fields, text["row"], "row", 1);
    require_shape(*x.row, {x.lanes()}, "row");
  } else if (rows != x.lanes()) {
    reject("table", "without row there is one row for each lane");
  }
  if (!text.contains("every")) return x;
  if (!text["every"].is_array()) reject("every", "not a list");
  for (const Json& pair : text["every"]) {
    only_keys(pair, "every", {"m", "blocks"});
    if (!pair.contains("m") || !pair.contains("blocks")) reject("every", "a pair is incomplete");
    const Int m = json_integer(pair["m"], "every");
    require_block_size(m, x.every);
    Tensor blocks = index_tensor(fields, pair["blocks"], "every", 2);
    if (blocks.shape[0] != rows || blocks.shape[1] == 0) reject("every", "blocks not [R, C_m]");
    x.every.push_back({m, blocks});
  }
  return x;
}

// E9: a shape that exceeds the memory allowed is an error before any allocation.
void require_memory(Int lanes, Int width, const std::string& field) {
  if (Wide(lanes) * width > Wide(1) << 30) reject(field, "more than the memory allowed");
}

// Lane b holds positions 0..lens[b]-1, padded on the left to seq.
Tensor left_padded(const std::vector<Int>& lens, Int seq) {
  const Int lanes = static_cast<Int>(lens.size());
  Tensor pos = zeros("i64", {lanes, seq});
  for (Int b = 0; b < lanes; ++b) {
    for (Int i = 0; i < seq; ++i) {
      const Int padding = seq - lens[static_cast<std::size_t>(b)];
      pos.integer[static_cast<std::size_t>(b * seq + i)] = i < padding ? -1 : i - padding;
    }
  }
  return pos;
}

// Sequence b owns slots b * width .. b * width + width - 1.
Tensor own_runs(Int lanes, Int width) {
  Tensor table = zeros("i64", {lanes, width});
  for (Int b = 0; b < lanes; ++b) {
    for (Int j = 0; j < width; ++j) {
      table.integer[static_cast<std::size_t>(b * width + j)] = b * width + j;
    }
  }
  return table;
}

// A4: rows(context, lens, every?): own runs of slots; for each m, runs of ceil(context/m) blocks.
Index rows(Fields& fields, const Json& text) {
  only_keys(text, "rows", {"context", "lens", "every"});
  const Int context = json_integer(required(text, "context"), "context");
  if (context <= 0) reject("context", "not positive");
  const std::vector<Int> lens = index_tensor(fields, required(text, "lens"), "lens", 1).integer;
  if (lens.empty()) reject("lens", "no lane");
  Int longest = 0;
  for (Int length : lens) {
    if (length < 0 || length > context) reject("lens", "negative or above context");
    longest = std::max(longest, length);
  }
  if (longest == 0) reject("lens", "all lengths are zero");
  const Int lanes = static_cast<Int>(lens.size());
  require_memory(lanes, context, "context");
  Index x;
  x.kind = "tabled";
  x.pos = left_padded(lens, longest);
  x.table = own_runs(lanes, context);
  if (!text.contains("every")) return x;
  if (!text["every"].is_array()) reject("every", "not a list");
  for (const Json& size : text["every"]) {
    const Int m = json_integer(size, "every");
    require_block_size(m, x.every);
    x.every.push_back({m, own_runs(lanes, context / m + (context % m == 0 ? 0 : 1))});
  }
  return x;
}

// A5: whole(batch, seq, lens?): positions 0..seq-1 (left padded with lens).
Index whole(Fields& fields, const Json& text) {
  only_keys(text, "whole", {"batch", "seq", "lens"});
  const Int batch = json_integer(required(text, "batch"), "batch");
  if (batch <= 0) reject("batch", "not positive");
  const Int seq = json_integer(required(text, "seq"), "seq");
  if (seq <= 0) reject("seq", "not positive");
  require_memory(batch, 1, "batch");
  require_memory(batch, seq, "seq");
  std::vector<Int> lens(static_cast<std::size_t>(batch), seq);
  if (text.contains("lens")) lens = index_tensor(fields, text["lens"], "lens", 1).integer;
  if (static_cast<Int>(lens.size()) != batch) reject("lens", "not one length for each lane");
  for (Int length : lens) {
    if (length < 0 || length > seq) reject("lens", "a length does not fit");
  }
  Index x;
  x.kind = "whole";
  x.pos = left_padded(lens, seq);
  return x;
}

// A6: packed(seq, lens[][]): sequences one after another, left padded to seq, each at 0..n-1.
Index packed(const Json& text) {
  only_keys(text, "packed", {"seq", "lens"});
  const Int seq = json_integer(required(text, "seq"), "seq");
  if (seq <= 0) reject("seq", "not positive");
  const Json& lens = required(text, "lens");
  if (!lens.is_array() || lens.empty()) reject("lens", "no lane");
  require_memory(static_cast<Int>(lens.size()), seq, "seq");
  Index x;
  x.kind = "packed";
  x.pos = zeros("i64", {static_cast<Int>(lens.size()), seq});
  x.pos.integer.clear();
  for (const Json& lane : lens) {
    if (!lane.is_array()) reject("lens", "a lane is not a list");
    std::vector<Int> held;
    for (const Json& length : lane) {
      const Int n = json_integer(length, "lens");
      if (n < 0) reject("lens", "a negative length");
      if (n > seq - static_cast<Int>(held.size())) reject("lens", "lengths above seq");
      for (Int p = 0; p < n; ++p) held.push_back(p);
    }
    x.pos.integer.insert(x.pos.integer.end(), static_cast<std::size_t>(seq) - held.size(), -1);
    x.pos.integer.insert(x.pos.integer.end(), held.begin(), held.end());
  }
  return x;
}

// A7: tokens see only the last w positions; replaces an earlier window.
Index with_window(Index x, const Json& text) {
  x.window = json_integer(text, "window");
  if (*x.window <= 0) reject("window", "not positive");
  return x;
}

// A8: token (b,i) reads only those columns, in that order; replaces an earlier selection.
Index with_selection(Fields& fields, Index x, const Json& text) {
  Tensor columns = index_tensor(fields, text, "select", 3);
  if (x.draft()) reject("select", "on a draft");
  if (columns.shape[2] == 0) reject("select", "no column");
  require_shape(columns, {x.lanes(), x.seq(), columns.shape[2]}, "select");
  x.columns = columns;
  return x;
}

// A9: the call's tokens are a draft; rejected on whole, block-reading and selecting indices.
Index with_draft(Fields& fields, Index x, const Json& text) {
  only_keys(text, "draft", {"slots", "sees"});
  Tensor slots = index_tensor(fields, required(text, "slots"), "slots", 2);
  require_shape(slots, {x.lanes(), x.seq()}, "slots");
  Tensor sees = index_tensor(fields, required(text, "sees"), "sees", 3, "bool");
  require_shape(sees, {x.lanes(), x.seq(), x.seq()}, "sees");
  if (!x.tabled()) reject("draft", "on a whole index");
  if (x.reads != 1) reject("draft", "on an index reading blocks");
  if (x.columns) reject("draft", "on a selecting index");
  x.slots = slots;
  x.sees = sees;
  return x;
}

// A10: identities first; rejected for m <= 0, another block size, a selection, a draft, packed,
// or a table with no blocks of m.
Index with_every(Index x, const Json& text) {
  const Int m = json_integer(text, "every");
  if (m <= 0) reject("every", "not positive");
  if (m == x.reads) return x;
  if (x.reads != 1) reject("every", "reads blocks of another size already");
  if (x.columns) reject("every", "on a selecting index");
  if (x.draft()) reject("every", "on a draft");
  if (x.kind == "packed") reject("every", "on a packed index");
  if (x.kind == "tabled") {
    bool found = false;
    for (const BlockTable& blocks : x.every) found = found || blocks.size == m;
    if (!found) reject("every", "no blocks of that size");
  }
  x.reads = m;
  return x;
}

// A11: seq is 1 and each lane's position is one past its greatest; a lane of padding goes to 0.
// Keeps window and every, drops selection and draft. Rejected on whole.
Index advanced(Index x) {
  if (!x.tabled()) reject("advance", "on a whole index");
  Tensor next = zeros("i64", {x.lanes(), 1});
  for (Int b = 0; b < x.lanes(); ++b) {
    Int greatest = -1;
    for (Int i = 0; i < x.seq(); ++i) {
      if (real_token(x, b, i)) greatest = std::max(greatest, position(x, b, i));
    }
    if (greatest == INT64_MAX) reject("advance", "a position past int64");
    next.integer[static_cast<std::size_t>(b)] = greatest + 1;
  }
  x.pos = next;
  x.columns.reset();
  x.slots.reset();
  x.sees.reset();
  return x;
}

Index apply(Fields& fields, const Index& x, const Json& builder) {
  only_keys(builder, "then", {"window", "select", "draft", "every", "advance"});
  if (builder.size() != 1) reject("then", "one builder for each entry");
  if (builder.contains("window")) return with_window(x, builder["window"]);
  if (builder.contains("select")) return with_selection(fields, x, builder["select"]);
  if (builder.contains("draft")) return with_draft(fields, x, builder["draft"]);
  if (builder.contains("every")) return with_every(x, builder["every"]);
  if (builder["advance"] != true) reject("advance", "only true");
  return advanced(x);
}

Index construct(Fields& fields, const Json& text) {
  if (!text.is_object()) reject("index", "not an object");
  for (const char* form : {"rows", "whole", "packed"}) {
    if (!text.contains(form)) continue;
    if (text.contains("pos") || text.contains("table")) break;
    only_keys(text, "index", {form, "then"});
    if (text.contains("rows")) return rows(fields, text["rows"]);
    if (text.contains("whole")) return whole(fields, text["whole"]);
    return packed(text["packed"]);
  }
  if (!text.contains("pos") && !text.contains("table")) reject("index", "none of the four forms");
  return make(fields, text);
}

}  // namespace

Index parse_index(Fields& fields) {
  const Json& text = fields.json("index");
  Index x = construct(fields, text);
  if (!text.contains("then")) return x;
  if (!text["then"].is_array()) reject("then", "not a list");
  for (const Json& builder : text["then"]) x = apply(fields, x, builder);
  return x;
}

// A1: a token's sequence is row[b], or b without row.
Int lane_row(const Index& x, Int b) { return x.row ? int_at(*x.row, {b}) : b; }

Int position(const Index& x, Int b, Int i) { return int_at(x.pos, {b, i}); }

// A2: any negative position is padding; a lane whose row is -1 is padding throughout.
bool real_token(const Index& x, Int b, Int i) {
  if (x.row && lane_row(x, b) == -1) return false;
  return position(x, b, i) >= 0;
}

// A12: pos clamped to [0, C-1] (S-1 on whole), padding 0; independent of every.
Tensor positions(const Index& x) {
  const Int last = x.tabled() ? x.table->shape[1] - 1 : x.seq() - 1;
  Tensor clamped = zeros("i64", {x.lanes(), x.seq()});
  for (Int b = 0; b < x.lanes(); ++b) {
    for (Int i = 0; i < x.seq(); ++i) {
      const Int t = real_token(x, b, i) ? position(x, b, i) : 0;
      clamped.integer[static_cast<std::size_t>(b * x.seq() + i)] = std::min(t, last);
    }
  }
  return clamped;
}

void op_index(Fields& fields, Result& result) {
  const Index x = parse_index(fields);
  result.json["kind"] = x.kind;
  result.add("pos", x.pos);
  result.json["table"] = nullptr;
  if (x.table) result.add("table", *x.table);
  result.json["row"] = nullptr;
  if (x.row) result.add("row", *x.row);
  result.json["every"] = nullptr;
  for (const BlockTable& blocks : x.every) {
    result.json["every"].push_back({{"m", blocks.size}, {"blocks", print_tensor(blocks.blocks)}});
  }
  result.json["reads"] = x.reads;
  result.json["window"] = nullptr;
  if (x.window) result.json["window"] = *x.window;
  result.json["columns"] = nullptr;
  if (x.columns) result.add("columns", *x.columns);
  result.json["draft"] = nullptr;
  if (x.draft()) {
    result.json["draft"] = {{"slots", print_tensor(*x.slots)}, {"sees", print_tensor(*x.sees)}};
  }
}

void op_positions(Fields& fields, Result& result) {
  result.add("positions", positions(parse_index(fields)));
}

}  // namespace quire_literal
