// Fuzzes .npy files: an Error, or a tensor that is written and read back the same.
#include "arrays/npy.h"
#include "fuzz_arrays.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quire;
  using namespace quire::arrays;
  const Bytes file = fuzz::input(data, size);
  for (const std::optional<DType> as :
       {std::optional<DType>(), std::optional(DType::bf16), std::optional(DType::f8_e4m3fn),
        std::optional(DType::boolean), std::optional(DType::f64)}) {
    const auto tensor = fuzz::attempt([&] { return read_npy(file, as); });
    if (tensor) fuzz::require_same(read_npy(write_npy(*tensor), tensor->dtype()), *tensor);
  }
  return 0;
}
