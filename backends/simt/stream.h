// Streams that run beside each other, a thread and a queue each, and the events that order them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "../gpu/runtime.h"

namespace quire::simt {

/// A failure that nobody has been told of yet. Streams that waited for the failed one share it: whoever is asked first tells it.
struct LateError {
  explicit LateError(gpu::Failure what) : failure(std::move(what)) {}
  const gpu::Failure failure;
  std::atomic<bool> told{false};

  /// Throws the failure, once.
  void tell() {
    if (!told.exchange(true)) throw gpu::Failure(failure);
  }
};

/// A place in a stream's order that others wait for.
class Point {
 public:
  void pass(std::shared_ptr<LateError> error);
  /// Returns when it has passed; answers the error that its stream then held.
  std::shared_ptr<LateError> wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool passed_ = false;
  std::shared_ptr<LateError> error_;
};

class Stream {
 public:
  /// Throws gpu::Failure QUIRE_UNAVAILABLE where no thread can be had.
  explicit Stream(int device);
  /// Waits for its work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int device() const { return device_; }
  /// Work that may throw gpu::Failure: what it throws is a late error. Left out while one waits to be told.
  void submit(std::function<void()> work);
  /// Work that is done all the same, and throws nothing.
  void submit_always(std::function<void()> work);
  std::shared_ptr<Point> record();
  void wait_for(std::shared_ptr<Point> point);
  /// Returns when all submitted is done; throws the late error.
  void synchronize();

 private:
  struct Task {
    std::function<void()> work;
    bool always;
  };

  void enqueue(Task task);
  void run_tasks();
  std::shared_ptr<LateError> untold();
  void hold(std::shared_ptr<LateError> error);

  const int device_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable drained_;
  std::deque<Task> tasks_;
  bool working_ = false;
  bool ending_ = false;
  std::shared_ptr<LateError> error_;
  std::thread thread_;
};

class Event {
 public:
  explicit Event(int device) : device_(device) {}

  int device() const { return device_; }
  void record(std::shared_ptr<Point> point);
  /// Of the last record; null: none, or of a null stream, whose work is done when its calls return.
  std::shared_ptr<Point> last();

 private:
  const int device_;
  std::mutex mutex_;
  std::shared_ptr<Point> point_;
};

}  // namespace quire::simt
