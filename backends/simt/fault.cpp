// Faults in words: which threads stand where.
#include "fault.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace quire::simt {
namespace {

// A block of 256 threads, each elsewhere, would fill a screen.
constexpr std::size_t most_groups = 8;
constexpr std::size_t most_ranges = 8;

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::ended: return "end";
    case Operation::barrier: return "barrier";
    case Operation::block_any: return "block_any";
    case Operation::warp_sum: return "warp_sum";
    case Operation::warp_max: return "warp_max";
    case Operation::warp_shuffle: return "warp_shuffle";
  }
  return "";
}

bool same(const Standing& a, const Standing& b) {
  if (a.operation != b.operation) return false;
  if (a.operation == Operation::ended) return true;
  return a.where.line() == b.where.line() && a.where.column() == b.where.column() &&
         std::strcmp(a.where.file_name(), b.where.file_name()) == 0;
}

std::string place(const Standing& at) { return fmt::format("{} at {}:{}", name_of(at.operation), at.where.file_name(), at.where.line()); }

struct Group {
  Standing at;
  std::vector<int> threads;
};

std::vector<Group> groups_of(const Standing* standing, int begin, int end) {
  std::vector<Group> groups;
  for (int thread = begin; thread < end; ++thread) {
    std::size_t i = 0;
    while (i < groups.size() && !same(groups[i].at, standing[thread])) ++i;
    if (i == groups.size()) groups.push_back({standing[thread], {}});
    groups[i].threads.push_back(thread);
  }
  return groups;
}

std::string numbers(const std::vector<int>& threads) {
  std::string text = threads.size() == 1 ? "thread " : "threads ";
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < threads.size();) {
    std::size_t last = i;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
    if (ranges > 0) text += ',';
    if (ranges++ == most_ranges) return text += "...";
    text += last == i ? fmt::format("{}", threads[i]) : fmt::format("{}-{}", threads[i], threads[last]);
    i = last + 1;
  }
  return text;
}

std::string list(const std::vector<Group>& groups) {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) text += "; ";
    if (i == most_groups) return text += fmt::format("{} more places", groups.size() - i);
    const Group& group = groups[i];
    const char* const plural = group.threads.size() == 1 ? "" : "s";
    if (group.at.operation == Operation::ended)
      text += fmt::format("{} {} ended", numbers(group.threads), *plural ? "have" : "has");
    else
      text += fmt::format("{} wait{} in {}", numbers(group.threads), *plural ? "" : "s", place(group.at));
  }
  return text;
}

std::string stuck_text(const Standing* standing, int threads, int warp_width) {
  // A warp in part at one of its operations explains more than who waits for it at a barrier.
  for (int begin = 0; begin < threads; begin += warp_width) {
    for (int thread = begin; thread < begin + warp_width; ++thread) {
      if (!of_warp(standing[thread].operation)) continue;
      return fmt::format("deadlock: {} reached by a part of warp {}: {}", place(standing[thread]), begin / warp_width,
                         list(groups_of(standing, begin, begin + warp_width)));
    }
  }
  return fmt::format("divergent barrier, a deadlock: {}", list(groups_of(standing, 0, threads)));
}

}  // namespace

std::string fault_text(const Fault& fault, const char* kernel, std::int64_t block, const Standing* standing, int threads, int warp_width,
                       std::int64_t shared_bytes) {
  const Standing& own = standing[fault.thread];
  const int warp = fault.thread / warp_width;
  std::string text;
  switch (fault.kind) {
    case Fault::none: break;
    case Fault::divergent_barrier: text = fmt::format("divergent barrier: {}", list(groups_of(standing, 0, threads))); break;
    case Fault::divergent_warp_operation:
      text = fmt::format("divergent operation of warp {}: {}", warp, list(groups_of(standing, warp * warp_width, (warp + 1) * warp_width)));
      break;
    case Fault::stuck: text = stuck_text(standing, threads, warp_width); break;
    case Fault::lane_outside:
      text = fmt::format("{}, thread {}: lane {}; allowed: 0 to {}", place(own), fault.thread, fault.detail, warp_width - 1);
      break;
    case Fault::shared_overrun:
      text = fmt::format("a store to byte {} of its shared memory, which has {}", fault.detail, shared_bytes);
      break;
    case Fault::thrown: text = fmt::format("thread {} threw an exception", fault.thread); break;
    case Fault::no_memory: text = fmt::format("no memory for {} threads with {} bytes of shared memory", threads, shared_bytes); break;
  }
  return fmt::format("kernel {}, block {}: {}", kernel, block, text);
}

}  // namespace quire::simt
