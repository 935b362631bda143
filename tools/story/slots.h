// Slots: which slots of the pools are free, and how many tables name each of the others.
#pragma once

#include <cstdint>
#include <vector>

namespace quire::story {

constexpr std::int64_t page_size = 16;

/// How many are in use or shared now, and the most that were at one time.
struct Usage {
  std::int64_t now = 0, most = 0;
  void change(std::int64_t by) {
    now += by;
    most = now > most ? now : most;
  }
};

/// One counter per slot: the tables that name it. The slot given back last is taken first, so that
/// slots are soon used again.
class Slots {
 public:
  /// Slots are taken in ascending order at first.
  explicit Slots(std::int64_t count);
  /// Pages come shuffled, the slots of one in ascending order; whoever takes whole pages gets
  /// pages.
  static Slots shuffled_pages(std::int64_t pages, std::uint64_t seed);

  std::int64_t count() const { return static_cast<std::int64_t>(users_.size()); }
  /// A free slot, now named once.
  std::int64_t take();
  /// One table more names the slot.
  void share(std::int64_t slot) { set_users(slot, users_[static_cast<std::size_t>(slot)] + 1); }
  /// One table fewer.
  void release(std::int64_t slot);

  const Usage& used() const { return used_; }
  const Usage& shared() const { return shared_; }
  /// Pages with a slot in use, pages with a shared one.
  const Usage& pages_used() const { return pages_used_; }
  const Usage& pages_shared() const { return pages_shared_; }

 private:
  void set_users(std::int64_t slot, std::int64_t users);

  std::vector<std::int64_t> users_, free_;
  std::vector<std::int64_t> used_of_page_, shared_of_page_;
  Usage used_, shared_, pages_used_, pages_shared_;
};

}  // namespace quire::story
