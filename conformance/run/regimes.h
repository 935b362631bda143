// Which regimes a call belongs to: what of its inputs matters to the errors of its results.
#pragma once

#include <quire/backend.h>

#include <string>
#include <vector>

namespace quire::conformance {

/// "decay: strong", "keys: l2norm" and so on: one class of each kind, in the order of kinds, for the ops whose results have tolerances, and
/// none for the others. Reads a call's inputs on the host as they are after it: the pools of attend with its stores in them.
///
/// The gated delta rule: decay (none, mild: at least 1/2, strong, with zeros, raw gates), beta (up to 1, up to 2), keys (l2norm or as they
/// are), the longest sequence of a prefill or draft of a verify, the states' dtype. Attention: columns that a token sees at most, weights
/// (flat: no token's greatest is past twice its even share; one-hot: some token's is past 0.99), inputs' dtype, what restricts a token's
/// sight, what scores go through.
std::vector<std::string> regimes_of(quire_op op, const void* args);

}  // namespace quire::conformance
