// The ops: one free function each, checking its arguments in one place and running on any backend.
//
// Shapes: B lanes, S tokens per lane, C columns, N slots; T tokens, n sequences, H = max(Hq, Hv) heads. Every function raises
// quire::Error: invalid_argument with the field's name in the case format, unsupported or unavailable from the backend. A call that
// raises has changed nothing. Tensors must be dense in their innermost axis; other axes may have any strides that nest without overlap.
#pragma once

#include <quire/index.h>
#include <quire/registry.h>

#include <optional>

namespace quire {

class Capture;
class Stream;

/// Where an op runs: a backend (the default one when null), and one of its streams (null: the call is done when it returns). Tensors lie on
/// the stream's device, or on the host where the backend reads it; a placed index (A15) gives its copy there. Results lie beside the inputs.
struct On {
  On() = default;
  On(const Backend* on_backend, const Stream* on_stream) : backend(on_backend), stream(on_stream) {}
  const Backend* backend = nullptr;
  const Stream* stream = nullptr;
  /// Host tensors are copied to this device, computed there and copied back, in the stream's order. Nothing is transferred without it.
  std::optional<Device> stage_on;
  /// Set by Capture::on: the op is recorded and does not run.
  Capture* capture = nullptr;
};

/// On a backend whatever it computes on: host tensors go to its first device and back where it does not read the host's memory.
On on_host_tensors(const Backend& backend, const Stream* stream = nullptr);

/// A tensor that a call changes. `Tensor&&` is given up and changed in place (a shared owner is copied first), `const Tensor&` is copied,
/// `Pool::in_place(tensor)` changes the caller's memory whoever else shares it. Results are the same (C9).
class Pool {
 public:
  Pool() = default;
  Pool(const Tensor& tensor);  // NOLINT(google-explicit-constructor)
  Pool(Tensor&& tensor);       // NOLINT(google-explicit-constructor)
  static Pool in_place(const Tensor& tensor);

  bool defined() const { return tensor_.defined(); }
  /// Whether the call writes the given memory itself: it was given up and nobody shares it by then, or lent.
  bool is_in_place() const { return mode_ == Mode::in_place || (mode_ == Mode::given_up && tensor_.is_sole_owner()); }
  /// As given, for checks.
  const Tensor& given() const { return tensor_; }
  /// The memory that the call writes: the given one or its copy, made at the first call.
  const Tensor& target();

 private:
  enum class Mode { in_place, given_up, copied };
  Tensor tensor_;
  Mode mode_ = Mode::in_place;
};

// ---- index ----

/// A12: i64 [B, S].
Tensor positions(const Index& index, const On& on = {});
/// A11 as an op, where `advance` can't read the positions: the next token's position of every lane, i64 [B, 1].
Tensor next_positions(const Index& index, const On& on = {});
/// B6: bool [B, S, C] ([B, S, C + S] under a draft, [B, S, k] under a selection).
Tensor mask(const Index& index, const On& on = {});
/// B6: the same as a predicate, stored nowhere. Host indices; out-of-range arguments are not seen.
bool visible(const Index& index, std::int64_t lane, std::int64_t token, std::int64_t column);

// ---- pools (laws C) ----

struct Extended {
  Tensor seen;
  Tensor pool;  ///< undefined when none was given (whole indices)
};
/// C1-C9. With QUIRE_CHECK=1 in the environment, `extend` and `attend` report what `check` finds on standard error.
/// values [B, S, ...], pool [N, ...] of one dtype and row shape; a whole index needs no pool.
Extended extend(const Index& index, const Tensor& values, Pool pool, const On& on = {});

// ---- attention (laws D) ----

struct AttendOptions {
  std::optional<double> scale;    ///< 1 / sqrt(D)
  std::optional<double> softcap;  ///< above 0
  Tensor sinks;                   ///< [Hq], floating
};
struct Attended {
  Tensor out;  ///< [B, S, Hq, Dv], q's dtype
  Tensor lse;  ///< f32 [B, S, Hq]
  Tensor k_pool, v_pool;
};
/// D1-D5. q [B, S, Hq, D], k [B, S, Hkv, D], v [B, S, Hkv, Dv]; a whole index needs no pools.
Attended attend(const Index& index, const Tensor& q, const Tensor& k, const Tensor& v, Pool k_pool, Pool v_pool,
                const AttendOptions& options = {}, const On& on = {});

// ---- the gated delta rule (laws E) ----

/// Inputs that the gated-delta calls share: [T, heads, *] in prefill, [B, 1, heads, *] in decode, [B, S, heads, *] in verify.
struct GdnInputs {
  Tensor q, k, v;
  Tensor g, beta;                     ///< f32 [..., H]; ones where undefined
  std::optional<double> scale;        ///< 1 / sqrt(K); in prefill 0 means that too
  std::optional<bool> use_qk_l2norm;  ///< off in prefill, on in decode and verify
};

/// E4-E9, after FlashInfer's chunk_gated_delta_rule.
struct GdnPrefill {
  GdnInputs inputs;
  Tensor cu_seqlens;                     ///< [n + 1]
  Tensor initial_state, state_indices;   ///< [*, H, V, K], [n]
  Pool output_state;                     ///< written only with output_final_state
  Tensor output_state_indices;           ///< [n]
  bool output_final_state = false;
  std::optional<std::int64_t> checkpoint_every_n_tokens;  ///< a positive multiple of 64; absent: no checkpoints
  Pool state_checkpoints;
  Tensor checkpoint_cu_starts, checkpoint_state_indices, prefix_lens;
};
struct GdnPrefilled {
  Tensor output;  ///< [T, H, V], q's dtype
  Tensor output_state, state_checkpoints;
};
GdnPrefilled gdn_prefill(GdnPrefill args, const On& on = {});

/// E3, E6, after FlashInfer's gated_delta_rule_decode. Raw gates come all four, without g and beta.
struct GdnDecode {
  GdnInputs inputs;
  Tensor A_log, a, dt_bias, b;  ///< [H], [B, 1, H], [H], [B, 1, H]
  Pool state_pool;
  Tensor state_indices, output_state_indices;  ///< [B]
};
struct GdnStates {
  Tensor output;
  Tensor state_pool;
  std::vector<Tensor> working;  ///< what a paged call made for itself; on a stream it stays, as the results, until the stream has passed
};
GdnStates gdn_decode(GdnDecode args, const On& on = {});

/// F2: the recurrence under a draft.
GdnStates gdn_verify(const Index& index, const GdnInputs& inputs, Pool state_pool, const Tensor& state_indices,
                     const Tensor& state_slots, const On& on = {});

// ---- paged states (laws E10-E14), after flashinfer.gdn_paged ----

/// E10: sequence b owns page_indices[page_indptr[b] : page_indptr[b + 1]].
struct PagedSequences {
  Tensor page_indices, page_indptr, last_page_len;
  std::int64_t page_size = 0;
};
struct GdnPrefillSlots {
  Tensor state_indices, output_state_indices, prefix_lens, checkpoint_cu_starts;  ///< i32 [n]
};
struct GdnDecodeSlots {
  Tensor state_indices, output_state_indices;  ///< i32 [n]
};
/// E11, E12. With num_pages, ids that the call touches are checked against it.
GdnPrefillSlots gdn_prefill_slots(const Tensor& cu_seqlens, const PagedSequences& pages, std::optional<std::int64_t> num_pages = {},
                                  const On& on = {});
GdnDecodeSlots gdn_decode_slots(const PagedSequences& pages, std::optional<std::int64_t> num_pages = {}, const On& on = {});
/// Given `slots` are used as they are (E13).
GdnStates gdn_prefill_paged(const GdnInputs& inputs, const Tensor& cu_seqlens, Pool state_pool, const PagedSequences& pages,
                            const GdnPrefillSlots* slots = nullptr, const On& on = {});
GdnStates gdn_decode_paged(GdnDecode args, const PagedSequences& pages, const GdnDecodeSlots* slots = nullptr, const On& on = {});

}  // namespace quire
