// attend: softmax over the columns that a token sees, read from the pools through the index (laws D). The pools have been extended (D1).
//
// A block takes one token, one query head and up to attend_values of its values. It goes over the token's columns in tiles, a thread per
// column for scores and a thread per value for sums, and keeps the sums relative to the greatest score so far (online softmax). Every sum
// runs in the order of the columns, so nothing but the token itself decides its bits.
#include "../index.h"
#include "../kernels.h"

namespace quire::gpu {

namespace {

// One of the columns that a token may see, and whether it does.
struct Column {
  bool is_seen = false;
  Place place;
};

struct Tile {
  Column columns[block_threads];
  float scores[block_threads];
  float weights[block_threads];
};

// The token at hand, and the kv head that its query head reads.
struct Reader {
  std::int64_t b, i, kv_head;
  std::int64_t least;
  Range range;
  std::int64_t columns;  // that it may see: its choices, or its range and a draft's tokens
};

QUIRE_DEVICE Reader reader_of(const AttendParameters& parameters, std::int64_t b, std::int64_t i, std::int64_t head) {
  const IndexView& index = parameters.index;
  Reader reader;
  reader.b = b;
  reader.i = i;
  reader.kv_head = head / (parameters.q.sizes[2] / parameters.k.sizes[2]);  // D1
  reader.least = is_draft(index) ? least_position(index, b) : -1;
  reader.range = seen_range(index, b, i, reader.least);
  reader.columns = is_selecting(index) ? choices_of(index) : size_of(reader.range) + (is_draft(index) ? seq_of(index) : 0);
  return reader;
}

QUIRE_DEVICE Column column_of(const AttendParameters& parameters, const Reader& reader, std::int64_t n) {
  const IndexView& index = parameters.index;
  const std::int64_t slots = parameters.k_pool.sizes[0];
  if (is_selecting(index)) {  // B5
    const std::int64_t column = choice_of(index, reader.b, reader.i, n);
    if (!sees(index, reader.b, reader.i, column, reader.least)) return {};
    return {true, place_of(index, reader.b, column, slots)};
  }
  if (n < size_of(reader.range)) return {true, place_of(index, reader.b, reader.range.begin + n, slots)};
  const std::int64_t token = n - size_of(reader.range);
  if (!sees_draft_token(index, reader.b, reader.i, token)) return {};
  return {true, {Place::call, token}};
}

// Where a column's key or value stands.
QUIRE_DEVICE std::int64_t row_offset(const TensorView& pool, const TensorView& tokens, const Reader& reader, const Place& place) {
  return place.in == Place::pool ? offset(pool, place.number, reader.kv_head) : offset(tokens, reader.b, place.number, reader.kv_head);
}

// D1, D2, D4
QUIRE_DEVICE float score_of(const AttendParameters& parameters, const Reader& reader, const float* query, const Place& place) {
  if (place.in == Place::nowhere) return 0;
  const TensorView& keys = place.in == Place::pool ? parameters.k_pool : parameters.k;
  const std::int64_t key = row_offset(parameters.k_pool, parameters.k, reader, place);
  float product = 0;
  for (std::int64_t d = 0; d < parameters.q.sizes[3]; ++d) product += query[d] * number_at(keys, key + d);
  const float score = parameters.scale * product;
  return parameters.softcap > 0 ? parameters.softcap * tanh_of(score / parameters.softcap) : score;
}

// The greater one, or NaN where one is.
QUIRE_DEVICE float greater(float a, float b) { return b > a || b != b ? b : a; }
// exp(x - greatest); an infinitely small score has no weight whatever the greatest is.
QUIRE_DEVICE float weight_of(float x, float greatest) { return x == -infinity() ? 0.0f : exp_of(x - greatest); }

// What the columns so far have come to: sums of weights, and of weights times values, relative to the greatest score.
struct Sums {
  static constexpr int parts = attend_values / block_threads;
  bool is_any_seen = false;
  float greatest = 0, weight = 0;
  float values[parts] = {};
};

QUIRE_DEVICE void add_tile(const AttendParameters& parameters, const Reader& reader, const Tile& tile, int count, float greatest,
                           std::int64_t first_value, Sums& sums) {
  float weight = 0;
  float values[Sums::parts] = {};
  for (int c = 0; c < count; ++c) {
    if (!tile.columns[c].is_seen) continue;  // D2
    sums.is_any_seen = true;
    weight += tile.weights[c];
    const Place& place = tile.columns[c].place;
    if (place.in == Place::nowhere) continue;  // D2: a hole's value is zero
    const TensorView& rows = place.in == Place::pool ? parameters.v_pool : parameters.v;
    const std::int64_t row = row_offset(parameters.v_pool, parameters.v, reader, place);
    for (int part = 0; part < Sums::parts; ++part) {
      const std::int64_t d = first_value + part * threads() + thread();
      if (d < parameters.v.sizes[3]) values[part] += tile.weights[c] * number_at(rows, row + d);
    }
  }
  const float factor = greatest == sums.greatest ? 1.0f : weight_of(sums.greatest, greatest);
  sums.greatest = greatest;
  sums.weight = sums.weight * factor + weight;
  for (int part = 0; part < Sums::parts; ++part) sums.values[part] = sums.values[part] * factor + values[part];
}

}  // namespace

QUIRE_KERNEL(attend, AttendParameters) {
  const IndexView& index = parameters.index;
  const std::int64_t heads = parameters.q.sizes[2], value_size = parameters.v.sizes[3];
  const std::int64_t value_parts = (value_size + attend_values - 1) / attend_values;
  Tile& tile = *shared_memory<Tile>();
  float* query = reinterpret_cast<float*>(&tile + 1);
  for (std::int64_t n = block(); n < batch_of(index) * seq_of(index) * heads * value_parts; n += blocks()) {
    const std::int64_t first_value = n % value_parts * attend_values, head = n / value_parts % heads, token = n / value_parts / heads;
    const std::int64_t b = token / seq_of(index), i = token % seq_of(index);
    const Reader reader = reader_of(parameters, b, i, head);
    for (std::int64_t d = thread(); d < parameters.q.sizes[3]; d += threads())
      query[d] = number_at(parameters.q, offset(parameters.q, b, i, head, d));
    // D4: a sink takes part in the denominator of a real token.
    const bool has_sink = is_present(parameters.sinks) && position(index, b, i) >= 0;
    const float sink = has_sink ? number_at(parameters.sinks, offset(parameters.sinks, head)) : -infinity();
    Sums sums;
    sums.greatest = sink;
    barrier();
    for (std::int64_t first = 0; first < reader.columns; first += threads()) {
      const int count = static_cast<int>(reader.columns - first < threads() ? reader.columns - first : threads());
      Column own;
      float score = 0;
      if (thread() < count) {
        own = column_of(parameters, reader, first + thread());
        if (own.is_seen) score = score_of(parameters, reader, query, own.place);
        tile.columns[thread()] = own;
        tile.scores[thread()] = score;
      }
      barrier();
      float greatest = sums.greatest;
      for (int c = 0; c < count; ++c) greatest = tile.columns[c].is_seen ? greater(greatest, tile.scores[c]) : greatest;
      if (thread() < count) tile.weights[thread()] = weight_of(score, greatest);
      barrier();
      add_tile(parameters, reader, tile, count, greatest, first_value, sums);
      barrier();  // the next tile's columns go where these stand
    }
    if (sink != -infinity()) sums.weight += sink == sums.greatest ? 1.0f : exp_of(sink - sums.greatest);  // also where both are infinite
    for (int part = 0; part < Sums::parts; ++part) {
      const std::int64_t d = first_value + part * threads() + thread();
      // D3: no column, no weight: zeros.
      if (d < value_size)
        put_number(parameters.out, offset(parameters.out, b, i, head, d), sums.is_any_seen ? sums.values[part] / sums.weight : 0.0f);
    }
    if (thread() == 0 && first_value == 0) {
      // An infinite score is its own sum of exps; the formula would subtract infinities.
      const bool is_greatest = !sums.is_any_seen || is_infinite(sums.greatest);
      put_number(parameters.lse, offset(parameters.lse, b, i, head), is_greatest ? sums.greatest : sums.greatest + log_of(sums.weight));
    }
    barrier();  // the next token's query goes where this one stands
  }
}

std::int64_t shared_of_attend(std::int64_t query_size) {
  return static_cast<std::int64_t>(sizeof(Tile)) + query_size * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace quire::gpu
