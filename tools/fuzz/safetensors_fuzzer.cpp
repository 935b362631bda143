// Fuzzes .safetensors files: an Error, or tensors that are written and read back the same.
#include "arrays/safetensors.h"
#include "fuzz_arrays.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quire;
  using namespace quire::arrays;
  const Bytes file = fuzz::input(data, size);
  const auto names = fuzz::attempt([&] { return safetensors_names(file); });
  if (!names) return 0;
  std::map<std::string, Tensor> tensors;
  for (const std::string& key : *names) {
    const auto tensor = fuzz::attempt([&] { return read_safetensors_entry(file, key); });
    if (tensor && !key.empty()) tensors.emplace(key, *tensor);
  }
  const auto back = read_safetensors(write_safetensors(tensors));
  if (back.size() != tensors.size()) std::abort();
  for (const auto& [key, tensor] : tensors) fuzz::require_same(back.at(key), tensor);
  return 0;
}
