// The dialect's functions, of the thread that runs. Like block.cpp, out of the thread sanitizer's sight.
#include "device.h"

#include "block.h"

namespace quire::gpu {

using simt::Operation;
using simt::running_block;

int thread() { return running_block->thread(); }
int threads() { return running_block->threads(); }
std::int64_t block() { return running_block->number(); }
std::int64_t blocks() { return running_block->blocks(); }
int warp_width() { return running_block->warp_width(); }
void* shared_memory_address() { return running_block->shared_memory(); }

void barrier(std::source_location where) { running_block->wait_for_block(Operation::barrier, false, where); }
bool block_any(bool flag, std::source_location where) { return running_block->wait_for_block(Operation::block_any, flag, where); }
float warp_sum(float value, std::source_location where) { return running_block->wait_for_warp(Operation::warp_sum, value, 0, where); }
float warp_max(float value, std::source_location where) { return running_block->wait_for_warp(Operation::warp_max, value, 0, where); }
float warp_shuffle(float value, int lane, std::source_location where) {
  return running_block->wait_for_warp(Operation::warp_shuffle, value, lane, where);
}

}  // namespace quire::gpu
