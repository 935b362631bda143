// The reference's ops, one function per law group, called by the backend's table.
#pragma once

#include <quire/backend.h>

namespace quire::reference {

void positions(const quire_positions_args& args);          // A12
void mask(const quire_mask_args& args);                    // B6
void advance(const quire_advance_args& args);              // A11
void extend(const quire_extend_args& args);                // C
void attend(const quire_attend_args& args);                // D
void gdn_prefill(const quire_gdn_prefill_args& args);      // E1-E9
void gdn_decode(const quire_gdn_decode_args& args);        // E3, E6
void gdn_verify(const quire_gdn_verify_args& args);        // F2
void gdn_prefill_slots(const quire_gdn_slots_args& args);  // E11
void gdn_decode_slots(const quire_gdn_slots_args& args);   // E12

}  // namespace quire::reference
