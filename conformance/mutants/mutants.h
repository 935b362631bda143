// The mutant bank: wrong backends, each with one real kind of mistake, that a conformance run must catch.
#pragma once

#include <quire/backend.h>

#include <string>
#include <vector>

namespace quire::conformance {

/// What a run must have, beside cases of the right family, for a mutant to be seen at all.
enum class Needs {
  nothing,        ///< small cases, outputs filled with poison beforehand
  guards,         ///< memory around the tensors that is checked; the mutant writes there, so it is no call for the plain heap
  big_pool,       ///< a pool of more than 2^31 elements (or bytes, where its mistake says so)
  repeats,        ///< the same call twice
  many_elements,  ///< about a million elements of results
  steps,          ///< captured steps
  advance_op      ///< the op advance, which Index::advance does on the host without a backend
};

struct Mutant {
  std::string name;
  std::string mistake;            ///< one sentence
  std::vector<std::string> laws;  ///< those it breaks, "C5"
  const quire_backend_table* table;
  Needs needs = Needs::nothing;
};

/// All of them, in a fixed order; names are unique. The tables live as long as the process.
const std::vector<Mutant>& mutants();

}  // namespace quire::conformance
