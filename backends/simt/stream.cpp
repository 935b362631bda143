// Streams' threads.
#include "stream.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <system_error>
#include <utility>

namespace quire::simt {

void Point::pass(std::shared_ptr<LateError> error) {
  const std::lock_guard lock(mutex_);
  passed_ = true;
  error_ = std::move(error);
  // Under the lock: whoever waits may destroy the point as soon as it can.
  changed_.notify_all();
}

std::shared_ptr<LateError> Point::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return passed_; });
  return error_;
}

Stream::Stream(int device) : device_(device) {
  try {
    thread_ = std::thread([this] { run_tasks(); });
  } catch (const std::system_error& error) {
    throw gpu::Failure{QUIRE_UNAVAILABLE, fmt::format("device {}: no thread for a stream: {}", device, error.what())};
  }
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  submitted_.notify_one();
  thread_.join();
}

void Stream::enqueue(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  submitted_.notify_one();
}

void Stream::submit(std::function<void()> work) { enqueue({std::move(work), false}); }
void Stream::submit_always(std::function<void()> work) { enqueue({std::move(work), true}); }

std::shared_ptr<LateError> Stream::untold() {
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr && error_->told) error_ = nullptr;
  return error_;
}

void Stream::hold(std::shared_ptr<LateError> error) {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr || error_->told) error_ = std::move(error);
}

std::shared_ptr<Point> Stream::record() {
  auto point = std::make_shared<Point>();
  submit_always([this, point] { point->pass(untold()); });
  return point;
}

void Stream::wait_for(std::shared_ptr<Point> point) {
  submit_always([this, point = std::move(point)] {
    if (auto error = point->wait()) hold(std::move(error));
  });
}

void Stream::synchronize() {
  std::shared_ptr<LateError> error;
  {
    std::unique_lock lock(mutex_);
    drained_.wait(lock, [&] { return tasks_.empty() && !working_; });
    error = std::move(error_);
    error_ = nullptr;
  }
  if (error != nullptr) error->tell();
}

void Stream::run_tasks() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      working_ = false;
      if (tasks_.empty()) drained_.notify_all();
      submitted_.wait(lock, [&] { return !tasks_.empty() || ending_; });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      working_ = true;
    }
    if (!task.always && untold() != nullptr) continue;
    try {
      task.work();
    } catch (const gpu::Failure& failure) {
      hold(std::make_shared<LateError>(failure));
    } catch (const std::bad_alloc&) {
      hold(std::make_shared<LateError>(gpu::Failure{QUIRE_UNAVAILABLE, "no memory"}));
    }
  }
}

void Event::record(std::shared_ptr<Point> point) {
  const std::lock_guard lock(mutex_);
  point_ = std::move(point);
}

std::shared_ptr<Point> Event::last() {
  const std::lock_guard lock(mutex_);
  return point_;
}

}  // namespace quire::simt
