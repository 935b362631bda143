// What a tensor's axes are called and which laws an element hangs on.
#pragma once

#include <quire/call.h>

#include <span>
#include <string>
#include <vector>

namespace quire::conformance {

/// What the call does with an element's row of a pool of states: nothing, store a state, store a checkpoint (E7).
enum class RowUse { kept, state, checkpoint };

/// "lane 0, token 2, head 1, element 3".
std::string place_of(const Call& call, std::string_view tensor, std::span<const std::int64_t> indices);

/// The laws that an element hangs on, the most particular first. Outside the gated delta rule that is one law. There it is every feature in
/// force for the element, since a wrong number does not tell which of them went wrong:
///  - a row of states that the call stores nothing in hangs on E8 (one pool for several things) and E6;
///  - what a stored state or an output is: F2 (verify), E7 (a checkpoint), E5 (a narrow state), E3 (raw gates), E2 (l2norm), E1;
///  - and where it comes from: E8, E4 (one of several sequences), E6 (rows by number).
/// A padded sequence's output is E6's alone, the call's own final state of a sequence without tokens E4's. `use` counts for pools of
/// states.
std::vector<std::string> laws_in_force(const Call& call, std::string_view tensor, std::span<const std::int64_t> indices, RowUse use);

}  // namespace quire::conformance
