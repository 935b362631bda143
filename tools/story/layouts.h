// Layouts: the ways in which a story's tokens can lie in a cache. Each gives the same logits.
#pragma once

#include "fault.h"
#include "model.h"
#include "slots.h"

#include <quire/check.h>

#include <functional>
#include <memory>
#include <optional>

namespace quire::story {

using Tokens = std::vector<Token>;

/// What a layout works with. The model outlives it.
struct Setup {
  const Model* model = nullptr;
  On on;
  std::int64_t context =
      0;  ///< tokens that a story is evaluated on at most: the columns of its table
  Fault fault = Fault::none;
  std::int64_t fault_from = 0;  ///< position from which on the fault is planted
};

/// What a layout did, for the report.
struct Counts {
  std::int64_t calls = 0;
  std::int64_t slots_used = 0, slots_shared = 0;  ///< the most at one time
  std::int64_t pages_used = 0, pages_shared = 0;
  std::int64_t forks = 0;
  std::int64_t lanes = 0;  ///< the most in one call
  std::int64_t drafts_accepted = 0, drafts_rejected = 0;
  std::int64_t columns_selected = 0;
  std::int64_t findings = 0;  ///< of quire::check, over all calls
  std::string first_finding;
};

class Layout {
 public:
  virtual ~Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  /// Tokens that each of its stories is evaluated on at most, at the start.
  virtual std::vector<std::int64_t> lengths() const { return {setup_.context}; }
  /// The next tokens of each story, none for one that ended. Returns the logits after each story's
  /// last token; stories more than were given are forks of story 0, with its tokens up to these.
  virtual std::vector<Logits> feed(const std::vector<Tokens>& next) = 0;
  /// Whether a fork takes the second best token, so that the branches part.
  virtual bool branches_part() const { return false; }
  /// What was done so far.
  virtual Counts counts() const { return counts_; }

 protected:
  explicit Layout(const Setup& setup) : setup_(setup) {}
  /// Plants the fault, asks quire::check, evaluates.
  std::vector<Logits> evaluate(const Index& index, std::span<const Token> tokens,
                               std::span<const std::int64_t> places);

  Setup setup_;
  Caches caches_;
  Counts counts_;
};

/// "rows", "paged", "chunked", "shared", "forked", "packed", "lanes", "draft", "select".
std::span<const std::string_view> layout_names();
/// Whether the layout has a table or a draft to plant a fault in.
bool has_table(std::string_view layout_name);
/// Raises std::runtime_error for an unknown name.
std::unique_ptr<Layout> make_layout(std::string_view name, const Setup& setup);

}  // namespace quire::story
