// Fuzzes .npz files: an Error, or tensors that are written and read back the same.
#include "arrays/npz.h"
#include "fuzz_arrays.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quire;
  using namespace quire::arrays;
  const Bytes file = fuzz::input(data, size);
  const auto names = fuzz::attempt([&] { return npz_names(file); });
  if (!names) return 0;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, DType> as;
  for (const std::string& key : *names) {
    auto tensor = fuzz::attempt([&] { return read_npz_entry(file, key); });
    if (!tensor) tensor = fuzz::attempt([&] { return read_npz_entry(file, key, DType::bf16); });
    if (!tensor || key.empty()) continue;
    as.emplace(key, tensor->dtype());
    tensors.emplace(key, *tensor);
  }
  const auto back = read_npz(write_npz(tensors), as);
  if (back.size() != tensors.size()) std::abort();
  for (const auto& [key, tensor] : tensors) fuzz::require_same(back.at(key), tensor);
  return 0;
}
