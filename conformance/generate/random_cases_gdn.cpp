// Random cases of gdn_prefill and gdn_decode on pools of rows.
#include "random_cases_gdn.h"

#include <algorithm>

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

enum class Lengths { none, one, several, with_empty, all_empty, crossing };
enum class Initial { absent, dense, indexed, indices_only };
enum class Output { absent, fresh, own, alias, unasked };
enum class Checkpoints { none, ordinal, indexed, aliased };

struct PrefillFeatures {
  Lengths lengths;
  Initial initial;
  Output output;
  bool output_rows;
  Checkpoints checkpoints;
  bool prefixed;
  std::int64_t layout;
  bool poisons;
};

PrefillFeatures pick_prefill_features(Random& random) {
  PrefillFeatures features{};
  features.lengths = random.pick_of(std::vector<Lengths>{
      Lengths::several, Lengths::several, Lengths::one, Lengths::with_empty, Lengths::with_empty,
      Lengths::crossing, Lengths::all_empty, Lengths::none});
  features.initial = random.pick_of(std::vector<Initial>{
      Initial::indexed, Initial::indexed, Initial::dense, Initial::absent, Initial::indices_only});
  features.output = random.pick_of(std::vector<Output>{
      Output::alias, Output::alias, Output::own, Output::fresh, Output::absent, Output::unasked});
  features.output_rows = random.pick_bool();
  features.checkpoints = random.pick_of(
      std::vector<Checkpoints>{Checkpoints::none, Checkpoints::ordinal, Checkpoints::indexed,
                               Checkpoints::aliased, Checkpoints::aliased});
  features.prefixed = random.pick(4) > 0;
  features.layout = random.pick(3);
  features.poisons = random.pick_bool();
  return features;
}

Ints draw_lengths(Random& random, Lengths kind) {
  if (kind == Lengths::none) return {};
  if (kind == Lengths::crossing) {  // ends and starts about the chunk of 64
    Ints lengths = {random.one_of(Ints{63, 64, 65, 67, 100, 128, 130})};
    if (random.chance(50)) lengths.push_back(random.between(0, 3));
    if (random.chance(30)) random.shuffle(lengths);
    return lengths;
  }
  Ints lengths;
  const std::int64_t count = kind == Lengths::one ? 1 : random.between(2, 4);
  for (std::int64_t sequence = 0; sequence < count; ++sequence) {
    const bool empty =
        kind == Lengths::all_empty || (kind == Lengths::with_empty && random.chance(50));
    lengths.push_back(empty ? 0 : random.between(1, 4));
  }
  return lengths;
}

// One call's rows: what each sequence reads, stores and checkpoints, as tokens of two pools.
struct Rows {
  RowPool pool;         // of initial_state, and of all that alias it
  RowPool output_pool;  // of an output_state of its own
  Ints read;
  Ints written;
};

void draw_rows(Random& random, const PrefillFeatures& features, std::int64_t sequences,
               bool output_rows, Rows& rows) {
  const bool may_share =
      output_rows || (features.output != Output::own && features.output != Output::alias);
  std::vector<bool> shared(at(sequences), false);
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    const std::int64_t kind = random.between(0, 9);
    std::int64_t row = RowPool::none;
    if (kind > 1) row = rows.pool.fresh();
    if (kind == 1 && random.chance(50)) row = RowPool::outside;
    // Without rows of their own to store to, two sequences that read one row would both write it.
    if (may_share && sequence > 0 && kind >= 8 && rows.read[0] >= 0) {
      row = rows.read[0];
      shared[0] = shared[at(sequence)] = true;
    }
    rows.read.push_back(row);
  }
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    if (!output_rows) {
      rows.written.push_back(rows.read[at(sequence)]);
      continue;
    }
    const std::int64_t kind = random.between(0, 9);
    std::int64_t row = RowPool::none;
    if (features.output == Output::own) {
      if (kind > 1) row = rows.output_pool.fresh();
    } else if (kind > 5 && rows.read[at(sequence)] >= 0 && !shared[at(sequence)]) {
      row = rows.read[at(sequence)];  // it is read first (E9)
    } else if (kind > 1) {
      row = rows.pool.fresh();
    }
    if (kind == 1) row = RowPool::outside;
    rows.written.push_back(row);
  }
}

}  // namespace

Json draw_gdn_prefill(Random& random) {
  RuleFeatures rule = pick_rule_features(random, false);
  PrefillFeatures features = pick_prefill_features(random);

  const Ints lengths = draw_lengths(random, features.lengths);
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  Ints cu_seqlens = {0};
  for (const std::int64_t length : lengths) cu_seqlens.push_back(cu_seqlens.back() + length);
  const bool crossing = features.lengths == Lengths::crossing;
  const Heads heads = draw_heads(random, rule, crossing);
  Json result = {{"op", "gdn_prefill"}};
  add_tokens(random, rule, heads, {cu_seqlens.back()}, true, crossing, result);
  result["cu_seqlens"] = integers(random, cu_seqlens);

  // Combinations that the laws exclude are taken to their nearest legal ones.
  const bool has_rows =
      features.initial == Initial::indexed || features.initial == Initial::indices_only;
  const bool has_initial =
      features.initial == Initial::indexed || features.initial == Initial::dense;
  if (features.output == Output::alias && !has_initial) features.output = Output::own;
  if (features.checkpoints == Checkpoints::aliased && features.initial != Initial::indexed) {
    features.checkpoints = Checkpoints::indexed;
  }
  const bool stores = features.output == Output::own || features.output == Output::alias;
  const bool output_rows = has_rows && stores && features.output_rows;

  Rows rows;
  if (has_rows) draw_rows(random, features, sequences, output_rows, rows);

  // Checkpoints (E7): each sequence's places, in any order and with gaps between.
  RowPool own_checkpoints;
  RowPool& checkpoint_pool =
      features.checkpoints == Checkpoints::aliased ? rows.pool : own_checkpoints;
  const std::int64_t interval = random.chance(75) ? 64 : 128;
  Ints prefix_lens;
  Ints starts(at(sequences), 0);
  Ints places;  // the row, as a token, behind each place
  if (features.checkpoints != Checkpoints::none) {
    Ints counts;
    for (const std::int64_t length : lengths) {
      std::int64_t prefix = interval * random.between(0, 3);
      prefix += random.between(-3, 1);
      if (random.chance(20)) prefix = random.between(0, 200);
      prefix_lens.push_back(features.prefixed ? std::max<std::int64_t>(0, prefix) : 0);
      counts.push_back((prefix_lens.back() + length) / interval - prefix_lens.back() / interval);
    }
    for (const std::int64_t sequence : shuffled(random, sequences)) {
      if (random.chance(25)) places.push_back(RowPool::none);  // a place of no sequence
      starts[at(sequence)] = static_cast<std::int64_t>(places.size());
      for (std::int64_t ordinal = 0; ordinal < counts[at(sequence)]; ++ordinal) {
        std::int64_t row = random.chance(75)   ? checkpoint_pool.fresh()
                           : random.chance(50) ? RowPool::none
                                               : RowPool::outside;
        const std::int64_t end = prefix_lens[at(sequence)] + lengths[at(sequence)];
        const bool at_end = ordinal + 1 == counts[at(sequence)] && end % interval == 0;
        // A boundary that is also the end may be the final state's row: the same bits (E11).
        if (features.checkpoints == Checkpoints::aliased && features.output == Output::alias &&
            at_end && rows.written[at(sequence)] >= 0 && random.chance(50)) {
          row = rows.written[at(sequence)];
        }
        places.push_back(row);
      }
      // The start of a sequence without checkpoints is never used.
      if (counts[at(sequence)] == 0 && random.chance(20)) starts[at(sequence)] = 999;
    }
  }
  rows.pool.close(random, random.between(0, 2));
  rows.output_pool.close(random, random.between(0, 2));
  own_checkpoints.close(random, random.between(0, 2));

  const Ints read = rows.pool.resolve(random, rows.read);
  if (has_rows) result["state_indices"] = integers(random, read);
  if (has_initial) {
    const bool indexed = features.initial == Initial::indexed;
    const std::int64_t count = indexed ? rows.pool.size() : sequences;
    result["initial_state"] =
        draw_states(random, rule, heads, count, read, indexed && features.poisons);
    if (features.layout == 1) pad_rows(random, result["initial_state"]);
  }
  RuleFeatures stored = rule;
  if (random.chance(30)) {
    stored.state_dtype =
        random.one_of(std::vector<std::string>{"f32", "bf16", "f16", "f8_e4m3fn", "f8_e5m2"});
  }
  if (features.output == Output::alias) result["output_state"] = "initial_state";
  if (features.output == Output::own || features.output == Output::unasked) {
    std::int64_t count = sequences;
    if (has_rows) count = output_rows ? rows.output_pool.size() : rows.pool.size();
    result["output_state"] = draw_states(random, stored, heads, count, {}, features.poisons);
    if (features.layout > 0) pad_rows(random, result["output_state"]);
  }
  if (output_rows) {
    const RowPool& pool = features.output == Output::own ? rows.output_pool : rows.pool;
    Ints written;
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
      written.push_back(pool.resolve(random, rows.written[at(sequence)]));
    }
    result["output_state_indices"] = integers(random, written);
  }
  if (features.output != Output::absent && features.output != Output::unasked) {
    result["output_final_state"] = true;
  } else if (random.chance(30)) {
    result["output_final_state"] = false;
  }

  if (features.checkpoints == Checkpoints::none) return result;
  result["checkpoint_every_n_tokens"] = interval;
  if (random.chance(30)) starts.push_back(random.between(-3, 99));  // not read
  result["checkpoint_cu_starts"] = integers(random, starts);
  if (features.prefixed) result["prefix_lens"] = integers(random, prefix_lens);
  if (features.checkpoints == Checkpoints::ordinal) {
    const std::int64_t count = static_cast<std::int64_t>(places.size()) + random.between(0, 1);
    result["state_checkpoints"] =
        draw_states(random, stored, heads, std::max<std::int64_t>(1, count), {}, features.poisons);
  } else {
    result["checkpoint_state_indices"] = integers(random, checkpoint_pool.resolve(random, places));
    result["state_checkpoints"] =
        features.checkpoints == Checkpoints::aliased
            ? Json("initial_state")
            : draw_states(random, stored, heads, own_checkpoints.size(), {}, features.poisons);
  }
  if (features.layout == 2 && result["state_checkpoints"].is_object()) {
    pad_rows(random, result["state_checkpoints"]);
  }
  return result;
}

Json draw_gdn_decode(Random& random) {
  const RuleFeatures rule = pick_rule_features(random, true);
  const bool has_output_rows = random.pick_bool();
  const bool padded = random.pick_bool();
  const bool padded_stride = random.pick_bool();
  const bool poisons = random.pick_bool();

  const std::int64_t batch = random.between(1, 4);
  const Heads heads = draw_heads(random, rule, false);
  Json result = {{"op", "gdn_decode"}};
  add_tokens(random, rule, heads, {batch, 1}, false, false, result);
  RowPool pool;
  Ints read;
  Ints written;
  std::int64_t shared = RowPool::none;
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    if (padded && random.chance(40)) {
      read.push_back(random.chance(70) ? RowPool::none : RowPool::outside);
      // Nothing is stored for a padded sequence, whatever row it names.
      written.push_back(random.chance(50) ? RowPool::none : 0);
      if (poisons) {
        poison_row(random, result["q"], sequence);
        poison_row(random, result["k"], sequence);
      }
      continue;
    }
    const bool shares = has_output_rows && shared >= 0 && random.chance(40);
    read.push_back(shares ? shared : pool.fresh());
    // A row that several read is written by none of them.
    const bool own = !shares && shared >= 0 && random.chance(50);
    if (shared < 0) shared = read.back();
    written.push_back(own                 ? read.back()
                      : random.chance(80) ? pool.fresh()
                      : random.chance(50) ? RowPool::none
                                          : RowPool::outside);
  }
  pool.close(random, random.between(0, 2));
  const Ints rows = pool.resolve(random, read);
  result["state_indices"] = integers(random, rows);
  if (has_output_rows) {
    result["output_state_indices"] = integers(random, pool.resolve(random, written));
  }
  result["state_pool"] = draw_states(random, rule, heads, pool.size(), rows, poisons);
  if (padded_stride) pad_rows(random, result["state_pool"]);
  return result;
}

}  // namespace quire_tests
