// Random cases of paged state pools: page tables, slots, paged prefill and decode.
#include <algorithm>

#include "random_cases_gdn.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

std::int64_t draw_prefix(Random& random, const PageFeatures& features) {
  const std::int64_t size = features.page_size;
  std::int64_t prefix = random.between(0, features.most_prefix);
  if (random.chance(60)) {  // about a page's end
    prefix = size * random.between(0, features.most_prefix / size);
    prefix += random.between(-3, 2);
  }
  if (!features.decode && random.chance(15)) prefix = 0;
  return std::max<std::int64_t>(features.decode ? 1 : 0, prefix);
}

// One sequence's pages before they have ids.
struct Owned {
  std::int64_t prefix = 0;
  std::int64_t fresh = 0;
  Ints pages;
};

Owned draw_sequence(Random& random, const PageFeatures& features, const std::vector<Owned>& earlier,
                    RowPool& pool) {
  Owned owned;
  const std::int64_t size = features.page_size;
  if (features.padded && random.chance(35)) {
    if (random.chance(50)) return owned;  // without pages
    // A scratch page of its own: no new token, or in decode one at 2 or later (E14).
    owned.prefix = random.between(1, size - 1);
    owned.fresh = features.decode ? 1 : 0;
    owned.pages = {pool.fresh()};
    return owned;
  }
  owned.prefix = draw_prefix(random, features);
  owned.fresh = features.decode ? 1 : random.between(random.chance(20) ? 0 : 1, features.most_new);
  const std::int64_t count = (owned.prefix + owned.fresh + size - 1) / size;
  std::int64_t shared = 0;
  if (features.shared && !earlier.empty()) {
    const Owned& source = random.one_of(earlier);
    const std::int64_t full = std::min(source.prefix, owned.prefix) / size;
    shared = std::min(full, random.between(1, 3));
    owned.pages.assign(source.pages.begin(), source.pages.begin() + shared);
  }
  for (std::int64_t page = shared; page < count; ++page) owned.pages.push_back(pool.fresh());
  return owned;
}

PageFeatures pick_page_features(Random& random) {
  PageFeatures features;
  features.page_size = random.pick_of(Ints{64, 64, 128});
  features.decode = random.pick_bool();
  features.shared = random.pick_bool();
  features.padded = random.pick_bool();
  features.strange = random.pick_bool();
  return features;
}

}  // namespace

PagePlan draw_pages(Random& random, const PageFeatures& features) {
  PagePlan plan;
  plan.page_size = features.page_size;
  RowPool pool;
  std::vector<Owned> sequences;
  std::int64_t count = random.between(1, 4);
  if (!features.decode && random.chance(5)) count = 0;
  for (std::int64_t sequence = 0; sequence < count; ++sequence) {
    sequences.push_back(draw_sequence(random, features, sequences, pool));
  }
  pool.close(random, random.between(0, 2));
  plan.pages = pool.size();
  for (const Owned& owned : sequences) {
    const auto pages = static_cast<std::int64_t>(owned.pages.size());
    const std::int64_t total = owned.prefix + owned.fresh;
    plan.prefix.push_back(owned.prefix);
    plan.cu_seqlens.push_back(plan.cu_seqlens.back() + owned.fresh);
    plan.indptr.push_back(plan.indptr.back() + pages);
    plan.last_page_len.push_back(pages > 0 ? total - (pages - 1) * plan.page_size
                                           : random.one_of(Ints{0, -5, 64, 9999}));
    const std::int64_t read_page = owned.prefix > 0 ? (owned.prefix - 1) / plan.page_size : -1;
    for (std::int64_t page = 0; page < pages; ++page) {
      std::int64_t id = pool.resolve(random, owned.pages[at(page)]);
      const bool touched = owned.fresh > 0 && page >= read_page;
      if (owned.fresh > 0 && page == read_page) plan.read.push_back(id);
      if (!touched && features.strange && random.chance(40)) {
        id = random.one_of(Ints{-1, plan.pages, plan.pages + 7, -9, 2147483647});
      }
      plan.indices.push_back(id);
    }
  }
  if (features.strange && random.chance(50)) {  // a tail that no sequence owns
    plan.indices.push_back(random.one_of(Ints{-1, 0, plan.pages, 1000}));
  }
  return plan;
}

void add_pages(Random& random, const PagePlan& plan, bool prefill, Json& result) {
  if (prefill) result["cu_seqlens"] = integers(random, plan.cu_seqlens);
  result["page_indices"] = integers(random, plan.indices);
  result["page_indptr"] = integers(random, plan.indptr);
  result["last_page_len"] = integers(random, plan.last_page_len);
  result["page_size"] = plan.page_size;
}

Json draw_slots(Random& random) {
  PageFeatures features = pick_page_features(random);
  features.page_size = random.one_of(Ints{64, 64, 128, 192, 1024});
  features.most_prefix = features.page_size * random.pick_of(Ints{1, 2, 5});
  features.most_new = random.pick_of(Ints{1, 9, 70, 400, 3000});
  const bool counted = random.pick_bool();
  const PagePlan plan = draw_pages(random, features);
  Json result = {{"op", features.decode ? "gdn_decode_slots" : "gdn_prefill_slots"}};
  add_pages(random, plan, !features.decode, result);
  if (counted) result["num_pages"] = plan.pages;
  return result;
}

Json draw_paged(Random& random) {
  const RuleFeatures rule = pick_rule_features(random, false);
  PageFeatures features = pick_page_features(random);
  const std::int64_t length = random.pick(4);  // a few tokens, or across pages
  const bool padded_stride = random.pick(3) == 0;
  const bool poisons = random.pick_bool();
  const bool crossing = length == 3 && !features.decode;
  if (crossing) features.most_new = random.chance(60) ? 75 : 150;
  if (length == 1) features.most_prefix = 300;
  PagePlan plan = draw_pages(random, features);
  while (plan.tokens() > 160) plan = draw_pages(random, features);

  const Heads heads = draw_heads(random, rule, plan.tokens() > 16 || plan.pages > 6);
  Json result = {{"op", features.decode ? "gdn_decode_paged" : "gdn_prefill_paged"}};
  const std::int64_t sequences = plan.sequences();
  RuleFeatures used = rule;
  if (features.decode && rule.gates == 0 && random.chance(70)) used.gates = 4;
  add_tokens(random, used, heads, features.decode ? Ints{sequences, 1} : Ints{plan.tokens()},
             !features.decode, plan.tokens() > 16, result);
  for (std::int64_t sequence = 0; features.decode && poisons && sequence < sequences; ++sequence) {
    // Without pages a decode sequence is padded (E10).
    if (plan.indptr[at(sequence)] < plan.indptr[at(sequence + 1)]) continue;
    poison_row(random, result["v"], sequence);
  }
  result["state_pool"] = draw_states(random, used, heads, plan.pages, plan.read, poisons);
  if (padded_stride) pad_rows(random, result["state_pool"]);
  add_pages(random, plan, !features.decode, result);
  return result;
}

}  // namespace quire_tests
