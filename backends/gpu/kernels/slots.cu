// Pool rows of a page table's sequences, a thread per sequence (laws E10-E12).
#include "../kernels.h"
#include "../tensors.h"

namespace quire::gpu {

namespace {

QUIRE_DEVICE std::int64_t entry(const TensorView& list, std::int64_t i) { return integer_at(list, offset(list, i)); }
QUIRE_DEVICE void put_entry(const TensorView& list, std::int64_t i, std::int64_t number) {
  static_cast<std::int32_t*>(list.data)[offset(list, i)] = static_cast<std::int32_t>(number);
}

// E10: a sequence's pages and tokens.
struct PagedSequence {
  bool is_bad = false;
  std::int64_t first_page = 0, pages = 0;  // in page_indices
  std::int64_t total = 0, prefix = 0;      // tokens after the call, and before it
};

// The new tokens of a sequence, -1 where the numbers are bad.
QUIRE_DEVICE std::int64_t fresh_of(const SlotsParameters& parameters, std::int64_t i) {
  const std::int64_t first = entry(parameters.cu_seqlens, i), end = entry(parameters.cu_seqlens, i + 1);
  return first < 0 || end < first ? -1 : end - first;
}

// E13: where a number is bad, the sequence is to read and store nothing.
QUIRE_DEVICE PagedSequence sequence_of(const SlotsParameters& parameters, std::int64_t i, std::int64_t fresh) {
  PagedSequence sequence;
  sequence.first_page = entry(parameters.page_indptr, i);
  const std::int64_t end = entry(parameters.page_indptr, i + 1);
  sequence.is_bad = true;
  if (fresh < 0 || sequence.first_page < 0 || end < sequence.first_page || end > parameters.page_indices.sizes[0]) return sequence;
  sequence.pages = end - sequence.first_page;
  if (sequence.pages > 0) {
    const std::int64_t last = entry(parameters.last_page_len, i);
    if (last < 1 || last > parameters.page_size || sequence.pages > INT64_MAX / parameters.page_size) return sequence;
    sequence.total = (sequence.pages - 1) * parameters.page_size + last;
  }
  if (sequence.total < fresh) return sequence;
  sequence.prefix = sequence.total - fresh;
  sequence.is_bad = false;
  return sequence;
}

QUIRE_DEVICE std::int64_t page_of(const SlotsParameters& parameters, const PagedSequence& sequence, std::int64_t page) {
  return entry(parameters.page_indices, sequence.first_page + page);
}

}  // namespace

// E11: read the page of the last prefix token, store the final state at the last page, checkpoints from the prefix's page on.
QUIRE_KERNEL(gdn_prefill_slots, SlotsParameters) {
  const std::int64_t count = parameters.last_page_len.sizes[0];
  for (std::int64_t i = block() * threads() + thread(); i < count; i += blocks() * threads()) {
    const std::int64_t fresh = fresh_of(parameters, i);
    const PagedSequence sequence = sequence_of(parameters, i, fresh);
    const std::int64_t prefix = sequence.prefix;
    // The checkpoints of a bad sequence begin where no list of rows reaches, so that prefill drops them (E9).
    const std::int64_t first_checkpoint = sequence.is_bad ? INT32_MAX : sequence.first_page + prefix / parameters.page_size;
    put_entry(parameters.state_indices, i,
              !sequence.is_bad && prefix > 0 ? page_of(parameters, sequence, (prefix - 1) / parameters.page_size) : -1);
    put_entry(parameters.output_state_indices, i, !sequence.is_bad && fresh > 0 ? page_of(parameters, sequence, sequence.pages - 1) : -1);
    put_entry(parameters.prefix_lens, i, prefix);
    put_entry(parameters.checkpoint_cu_starts, i, first_checkpoint);
  }
}

// E12: a token that opens a page reads the page before; otherwise the last page is read and written. A sequence without pages is padded.
QUIRE_KERNEL(gdn_decode_slots, SlotsParameters) {
  const std::int64_t count = parameters.last_page_len.sizes[0];
  for (std::int64_t i = block() * threads() + thread(); i < count; i += blocks() * threads()) {
    const PagedSequence sequence = sequence_of(parameters, i, 1);
    const bool is_padded = sequence.is_bad || sequence.prefix == 0;  // E13: a decoded token has one before it
    put_entry(parameters.state_indices, i, is_padded ? -1 : page_of(parameters, sequence, (sequence.prefix - 1) / parameters.page_size));
    put_entry(parameters.output_state_indices, i, is_padded ? -1 : page_of(parameters, sequence, sequence.pages - 1));
  }
}

}  // namespace quire::gpu
