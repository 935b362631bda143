// The honest backend's ops, one function per args struct.
#pragma once

#include "fault.h"

namespace quire::conformance::honest {

void positions(const quire_positions_args& args, const Setting& setting);          // A12
void mask(const quire_mask_args& args, const Setting& setting);                    // B6
void advance(const quire_advance_args& args, const Setting& setting);              // A11
void extend(const quire_extend_args& args, const Setting& setting);                // C
void attend(const quire_attend_args& args, const Setting& setting);                // D
void gdn_prefill(const quire_gdn_prefill_args& args, const Setting& setting);      // E1-E9
void gdn_decode(const quire_gdn_decode_args& args, const Setting& setting);        // E3, E6
void gdn_verify(const quire_gdn_verify_args& args, const Setting& setting);        // F2
void gdn_prefill_slots(const quire_gdn_slots_args& args, const Setting& setting);  // E11
void gdn_decode_slots(const quire_gdn_slots_args& args, const Setting& setting);   // E12

}  // namespace quire::conformance::honest
