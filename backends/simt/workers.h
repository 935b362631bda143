// Operating system threads that share a launch's blocks: oneTBB, or plain threads where it is absent.
#pragma once

namespace quire::simt {

/// "oneTBB", "plain threads"; "one thread" where a sanitizer wants the blocks one after another.
const char* workers_name();

/// Calls `work(argument)` on the calling thread and beside it on at most `workers - 1` others; returns when all calls have. `work` throws
/// nothing.
void on_workers(int workers, void (*work)(void* argument), void* argument);

}  // namespace quire::simt
