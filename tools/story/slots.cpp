// Slots: taking, sharing, giving back.
#include "slots.h"

#include "choose.h"

#include <algorithm>
#include <utility>
#include <numeric>
#include <stdexcept>

namespace quire::story {

namespace {

// A slot, or its page where `of_page` counts, comes into use or goes out of it.
void count_change(bool before, bool after, Usage& slots, std::int64_t& of_page, Usage& pages) {
  if (before == after) return;
  const std::int64_t by = after ? 1 : -1;
  slots.change(by);
  of_page += by;
  if (of_page == (after ? 1 : 0)) pages.change(by);
}

}  // namespace

Slots::Slots(std::int64_t count)
    : users_(static_cast<std::size_t>(count)),
      free_(static_cast<std::size_t>(count)),
      used_of_page_(static_cast<std::size_t>(count / page_size + 1)),
      shared_of_page_(used_of_page_.size()) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

Slots Slots::shuffled_pages(std::int64_t pages, std::uint64_t seed) {
  Slots slots(pages * page_size);
  std::vector<std::int64_t> order(static_cast<std::size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[philox({static_cast<std::uint32_t>(i), 0, 0, 1},
                                         static_cast<std::uint32_t>(seed))[0] %
                                  i]);
  }
  for (std::size_t i = 0; i < slots.free_.size(); ++i) {
    const std::size_t page = i / page_size;
    slots.free_[slots.free_.size() - 1 - i] =
        order[page] * page_size + static_cast<std::int64_t>(i % page_size);
  }
  return slots;
}

std::int64_t Slots::take() {
  if (free_.empty()) throw std::logic_error("no free slot is left");
  const std::int64_t slot = free_.back();
  free_.pop_back();
  set_users(slot, 1);
  return slot;
}

void Slots::release(std::int64_t slot) {
  const std::int64_t users = users_[static_cast<std::size_t>(slot)] - 1;
  set_users(slot, users);
  if (users == 0) free_.push_back(slot);
}

void Slots::set_users(std::int64_t slot, std::int64_t users) {
  const std::int64_t before = std::exchange(users_[static_cast<std::size_t>(slot)], users);
  const auto page = static_cast<std::size_t>(slot / page_size);
  count_change(before > 0, users > 0, used_, used_of_page_[page], pages_used_);
  count_change(before > 1, users > 1, shared_, shared_of_page_[page], pages_shared_);
}

}  // namespace quire::story
