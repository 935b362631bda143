// The report of `quire story`: one line per layout for people, JSON for programs.
#pragma once

#include "generate.h"
#include "story.h"

namespace quire::story {

/// "rows: 256 tokens, 2100 tokens/s, 256 slots in 16 pages, ...".
std::string summary(const Outcome& outcome);

/// Everything as one JSON object, a newline at its end. Numbers that are not finite are null.
std::string json_report(const StoryOptions& options, std::string_view backend,
                        const std::vector<Outcome>& outcomes, int exit_code);

}  // namespace quire::story
