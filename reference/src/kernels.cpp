// Which instruction set the kernels use: the widest of the processor, or QUIRE_ISA.
#include "kernels.h"

#include <quire/error.h>

#include <cstdlib>
#include <string_view>

namespace quire::reference {

extern const Kernels kernels_scalar;
#if defined(__x86_64__)
extern const Kernels kernels_sse2, kernels_avx2, kernels_avx512;
#elif defined(__aarch64__)
extern const Kernels kernels_neon;
#endif

const std::vector<const Kernels*>& available_kernels() {
  static const std::vector<const Kernels*> sets = [] {
    std::vector<const Kernels*> found{&kernels_scalar};
#if defined(__x86_64__)
    found.push_back(&kernels_sse2);
    if (__builtin_cpu_supports("avx2")) found.push_back(&kernels_avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      found.push_back(&kernels_avx512);
    }
#elif defined(__aarch64__)
    found.push_back(&kernels_neon);
#endif
    return found;
  }();
  return sets;
}

const Kernels& kernels() {
  const char* wanted = std::getenv("QUIRE_ISA");
  if (wanted == nullptr || *wanted == '\0') return *available_kernels().back();
  std::string names;
  for (const Kernels* set : available_kernels()) {
    if (std::string_view(wanted) == set->name) return *set;
    names += (names.empty() ? "" : ", ") + std::string(set->name);
  }
  reject("QUIRE_ISA", "\"" + std::string(wanted) + "\"", names + " on this processor");
}

}  // namespace quire::reference
