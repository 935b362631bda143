// DLPack: tensors in and out of other frameworks.
#include <quire/tensor.h>

#include "layout.h"

#include <dlpack/dlpack.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace quire {

namespace {

// The type codes of DLPack 1.1, which Debian's header does not name yet.
constexpr std::uint8_t code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_bool = 6, code_f8_e4m3fn = 10,
                       code_f8_e5m2 = 12;

struct Code {
  DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};
constexpr std::array<Code, QUIRE_DTYPE_COUNT> codes = {{{DType::boolean, code_bool, 8},
                                                        {DType::i8, code_int, 8},
                                                        {DType::u8, code_uint, 8},
                                                        {DType::i16, code_int, 16},
                                                        {DType::i32, code_int, 32},
                                                        {DType::i64, code_int, 64},
                                                        {DType::f16, code_float, 16},
                                                        {DType::bf16, code_bfloat, 16},
                                                        {DType::f32, code_float, 32},
                                                        {DType::f64, code_float, 64},
                                                        {DType::f8_e4m3fn, code_f8_e4m3fn, 8},
                                                        {DType::f8_e5m2, code_f8_e5m2, 8}}};

struct Exported {
  Tensor tensor;
  Shape shape, strides;
  DLManagedTensor managed{};
};

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) reject("dlpack", "a null pointer", "a DLManagedTensor");
  const DLTensor& source = managed->dl_tensor;
  const Code* found = nullptr;
  for (const Code& code : codes) {
    if (code.code == source.dtype.code && code.bits == source.dtype.bits && source.dtype.lanes == 1) found = &code;
  }
  if (found == nullptr) {
    reject("dlpack", fmt::format("type code {}, {} bits, {} lanes", source.dtype.code, source.dtype.bits, source.dtype.lanes),
           "bool, 8- to 64-bit signed integers, u8, f16, bf16, f32, f64, fp8 e4m3fn and e5m2 of one lane");
  }
  if (source.ndim < 0) reject("dlpack", fmt::format("{} axes", source.ndim), "0 or more");
  Shape shape(source.shape, source.shape + source.ndim);
  count_elements(shape, "dlpack");
  Shape strides;
  if (source.strides != nullptr) strides.assign(source.strides, source.strides + source.ndim);
  auto* data = static_cast<std::byte*>(source.data) + source.byte_offset;
  const Device device{static_cast<std::int32_t>(source.device.device_type), source.device.device_id};
  require_layout(Tensor::borrow(data, found->dtype, shape, strides, device), "dlpack");
  std::shared_ptr<void> owner(managed, [](void* p) {
    auto* taken = static_cast<DLManagedTensor*>(p);
    if (taken->deleter != nullptr) taken->deleter(taken);
  });
  return Tensor::share(std::move(owner), data, found->dtype, std::move(shape), std::move(strides), device);
}

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  if (!tensor.defined()) reject("dlpack", "an undefined tensor", "a tensor");
  auto exported = std::make_unique<Exported>();
  exported->tensor = tensor;
  exported->shape = tensor.shape();
  exported->strides = tensor.strides();
  const Code& code = codes[static_cast<std::size_t>(tensor.dtype())];
  DLTensor& target = exported->managed.dl_tensor;
  target.data = tensor.raw();
  target.device = {static_cast<DLDeviceType>(tensor.device().type), tensor.device().id};
  target.ndim = static_cast<std::int32_t>(tensor.rank());
  target.dtype = {code.code, code.bits, 1};
  target.shape = exported->shape.data();
  target.strides = exported->strides.data();
  target.byte_offset = 0;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  return &exported.release()->managed;
}

}  // namespace quire
