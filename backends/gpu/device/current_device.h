// The calling thread's current device, changed for a scope: the caller never finds another one than it left.
#pragma once

#include "vendor_call.h"

namespace quire::gpu {

class CurrentDevice {
 public:
  explicit CurrentDevice(std::int32_t id) {
    VENDOR_CALL(GetDevice, &before_);
    if (before_ == id) return;
    VENDOR_CALL(SetDevice, id);
    is_changed_ = true;
  }
  ~CurrentDevice() {
    if (is_changed_) ignore(VENDOR(SetDevice)(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool is_changed_ = false;
};

}  // namespace quire::gpu
