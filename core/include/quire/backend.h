/* The C ABI between Quire and its backends: the one header a plugin includes.
 *
 * C11, no dependency. Read it from top to bottom: versions, dtypes, tensors, the index, one args struct per op, the numerics
 * contract, the table of functions, discovery. Law numbers (A1 ... F3) are those of the semantics version below.
 *
 * Rules that hold everywhere
 *  - Every struct but the fixed pairs quire_device and quire_block_table begins with `struct_size`, the size its writer knew. A reader
 *    uses no field that lies beyond it. New fields go at the end, so an older plugin and a newer host understand each other.
 *  - The host has checked every argument (core/validate) before it calls. A backend checks no shape, dtype or host value again, but a
 *    number held on a device may be bad: laws A2 and E6 say that it then reads zero and stores nothing.
 *  - Offsets are 64-bit. Strides are in elements, positive, non-overlapping; the innermost axis is dense.
 *  - Nothing is thrown across. A function answers a quire_status; `last_error` explains the last failure of the calling thread.
 *  - The host allocates results and frees what it allocated. An op allocates nothing that outlives it.
 */
#ifndef QUIRE_BACKEND_H
#define QUIRE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions ---- */

/* The ABI spoken here. 0 is not frozen: it becomes 1 when two unlike implementations have used all of it. */
#define QUIRE_ABI_VERSION 0u
/* The oldest that a library built with this header still speaks. */
#define QUIRE_ABI_VERSION_MIN 0u
/* The laws: a backend of another semantics version computes other results. */
#define QUIRE_SEMANTICS_VERSION 1u

/* ---- status ---- */

typedef int32_t quire_status;
enum {
  QUIRE_OK = 0,
  QUIRE_INVALID_ARGUMENT = 1, /* the caller's mistake; names the argument */
  QUIRE_UNSUPPORTED = 2,      /* right, but this backend has no such op, dtype or option */
  QUIRE_UNAVAILABLE = 3,      /* the device, driver or memory is not there now */
  QUIRE_INTERNAL = 4          /* a fault of the backend */
};

/* ---- dtypes ---- */

typedef int32_t quire_dtype;
enum {
  QUIRE_BOOL = 0, /* one byte, 0 or 1 */
  QUIRE_I8 = 1,
  QUIRE_U8 = 2,
  QUIRE_I16 = 3,
  QUIRE_I32 = 4,
  QUIRE_I64 = 5,
  QUIRE_F16 = 6,
  QUIRE_BF16 = 7,
  QUIRE_F32 = 8,
  QUIRE_F64 = 9,
  QUIRE_F8_E4M3FN = 10, /* no infinity, 448 is the largest */
  QUIRE_F8_E5M2 = 11,   /* 57344 is the largest finite */
  QUIRE_DTYPE_COUNT = 12
};

/* ---- devices and tensors ---- */

/* Device types carry DLPack's numbers: 1 CPU, 2 CUDA, 3 CUDA pinned host, 10 ROCm, 11 ROCm pinned host, 12 an extension: a device of
 * some other kind, also one that software plays. */
typedef struct quire_device {
  int32_t type;
  int32_t id;
} quire_device;
enum { QUIRE_DEVICE_CPU = 1, QUIRE_DEVICE_CUDA = 2, QUIRE_DEVICE_ROCM = 10, QUIRE_DEVICE_EXTENSION = 12 };

/* A tensor that somebody else owns. `shape` and `strides` have `rank` entries; the strides count elements. `data` is the address of
 * element (0, ..., 0); it may be null where an axis is empty. */
typedef struct quire_tensor {
  size_t struct_size;
  void* data;
  const int64_t* shape;
  const int64_t* strides;
  int32_t rank;
  quire_dtype dtype;
  quire_device device;
} quire_tensor;

/* ---- the index (laws A) ---- */

enum { QUIRE_INDEX_WHOLE = 0, QUIRE_INDEX_PACKED = 1, QUIRE_INDEX_TABLED = 2 };

/* One of A3's pairs: block j of row r stands in slot blocks[r, j] of the pools read in blocks of `block_size`. */
typedef struct quire_block_table {
  int64_t block_size;
  const quire_tensor* blocks; /* i64 [R, C_m] */
} quire_block_table;

typedef struct quire_index {
  size_t struct_size;
  int32_t kind;              /* QUIRE_INDEX_* */
  const quire_tensor* pos;   /* i64 [B, S] */
  const quire_tensor* table; /* i64 [R, C]; null unless tabled */
  const quire_tensor* row;   /* i64 [B]; null: lane b is row b */
  int64_t block_table_count;
  const quire_block_table* block_tables;
  int64_t reads;             /* block size the index reads in, 1 for positions (A10) */
  int64_t window;            /* 0: none (A7) */
  const quire_tensor* columns; /* i64 [B, S, k], the selection; null: none (A8) */
  const quire_tensor* slots;   /* i64 [B, S], the draft's slots; null: no draft (A9) */
  const quire_tensor* sees;    /* bool [B, S, S]; null: no draft */
} quire_index;

/* ---- ops ---- */

typedef int32_t quire_op;
enum {
  QUIRE_OP_POSITIONS = 0,          /* quire_positions_args */
  QUIRE_OP_MASK = 1,               /* quire_mask_args */
  QUIRE_OP_ADVANCE = 2,            /* quire_advance_args */
  QUIRE_OP_EXTEND = 3,             /* quire_extend_args */
  QUIRE_OP_ATTEND = 4,             /* quire_attend_args */
  QUIRE_OP_GDN_PREFILL = 5,        /* quire_gdn_prefill_args */
  QUIRE_OP_GDN_DECODE = 6,         /* quire_gdn_decode_args */
  QUIRE_OP_GDN_VERIFY = 7,         /* quire_gdn_verify_args */
  QUIRE_OP_GDN_PREFILL_SLOTS = 8,  /* quire_gdn_slots_args */
  QUIRE_OP_GDN_DECODE_SLOTS = 9,   /* quire_gdn_slots_args */
  QUIRE_OP_COUNT = 10
};

/* A12: out[b, i], i64 [B, S]. */
typedef struct quire_positions_args {
  size_t struct_size;
  const quire_index* index;
  const quire_tensor* positions;
} quire_positions_args;

/* B6: bool [B, S, C], [B, S, C + S] under a draft, [B, S, k] under a selection. */
typedef struct quire_mask_args {
  size_t struct_size;
  const quire_index* index;
  const quire_tensor* mask;
} quire_mask_args;

/* A11: i64 [B, 1], the positions of the next tokens. */
typedef struct quire_advance_args {
  size_t struct_size;
  const quire_index* index;
  const quire_tensor* positions;
} quire_advance_args;

/* C: any dtype, rows of any width, copied bit for bit. */
typedef struct quire_extend_args {
  size_t struct_size;
  const quire_index* index;
  const quire_tensor* values; /* [B, S, ...] */
  const quire_tensor* pool;   /* [N, ...], in and out; null on a whole index */
  const quire_tensor* seen;   /* out, shape of C5-C7 */
} quire_extend_args;

/* D. `k_pool` and `v_pool` are in and out; null on a whole index. */
typedef struct quire_attend_args {
  size_t struct_size;
  const quire_index* index;
  const quire_tensor* q;      /* [B, S, Hq, D] */
  const quire_tensor* k;      /* [B, S, Hkv, D] */
  const quire_tensor* v;      /* [B, S, Hkv, Dv] */
  const quire_tensor* k_pool; /* [N, Hkv, D] of k's dtype */
  const quire_tensor* v_pool; /* [N, Hkv, Dv] of v's dtype */
  const quire_tensor* sinks;  /* [Hq] or null (D4) */
  const quire_tensor* out;    /* [B, S, Hq, Dv], q's dtype */
  const quire_tensor* lse;    /* f32 [B, S, Hq] */
  double scale;               /* the default has been filled in */
  double softcap;             /* 0: none */
} quire_attend_args;

/* E1-E9. Integer tensors are i32 or i64, each its own. Null where absent. */
typedef struct quire_gdn_prefill_args {
  size_t struct_size;
  const quire_tensor* q;    /* [T, Hq, K] */
  const quire_tensor* k;    /* [T, Hk, K] */
  const quire_tensor* v;    /* [T, Hv, V] */
  const quire_tensor* g;    /* f32 [T, H], linear decay; null: ones */
  const quire_tensor* beta; /* f32 [T, H]; null: ones */
  const quire_tensor* cu_seqlens;               /* [n + 1] */
  const quire_tensor* initial_state;            /* [*, H, V, K]; null: zero states */
  const quire_tensor* state_indices;            /* [n]; null: sequence i reads row i */
  const quire_tensor* output_state;             /* in and out; null: no final state is stored */
  const quire_tensor* output_state_indices;     /* [n]; null: the read row, else row i */
  const quire_tensor* state_checkpoints;        /* in and out [*, H, V, K]; null: none */
  const quire_tensor* checkpoint_cu_starts;     /* [n] or [n + 1] */
  const quire_tensor* checkpoint_state_indices; /* null: the ordinal is the row */
  const quire_tensor* prefix_lens;              /* [n]; null: zeros */
  const quire_tensor* output;                   /* out [T, H, V], q's dtype */
  int64_t checkpoint_every_n_tokens;            /* 0: none */
  double scale;                                 /* the default has been filled in */
  int32_t use_qk_l2norm;                        /* 0 or 1 */
  int32_t output_state_is_fresh; /* 1: the call's own result; a zero-length sequence's row gets its initial state (E4) */
} quire_gdn_prefill_args;

/* One token per sequence. Either g and beta (each may be null) or the four raw inputs of E3. */
typedef struct quire_gdn_decode_args {
  size_t struct_size;
  const quire_tensor* q;    /* [B, 1, Hq, K] */
  const quire_tensor* k;    /* [B, 1, Hk, K] */
  const quire_tensor* v;    /* [B, 1, Hv, V] */
  const quire_tensor* g;    /* f32 [B, 1, H] */
  const quire_tensor* beta; /* f32 [B, 1, H] */
  const quire_tensor* A_log;   /* [H] */
  const quire_tensor* a;       /* [B, 1, H] */
  const quire_tensor* dt_bias; /* [H] */
  const quire_tensor* b;       /* [B, 1, H] */
  const quire_tensor* state_pool;           /* in and out [N, H, V, K] */
  const quire_tensor* state_indices;        /* [B] */
  const quire_tensor* output_state_indices; /* [B]; null: the read row */
  const quire_tensor* output;               /* out [B, 1, H, V], q's dtype */
  double scale;
  int32_t use_qk_l2norm;
} quire_gdn_decode_args;

/* F2: the recurrence under a draft. */
typedef struct quire_gdn_verify_args {
  size_t struct_size;
  const quire_index* index; /* a draft */
  const quire_tensor* q;    /* [B, S, Hq, K] */
  const quire_tensor* k;    /* [B, S, Hk, K] */
  const quire_tensor* v;    /* [B, S, Hv, V] */
  const quire_tensor* g;    /* f32 [B, S, H]; null: ones */
  const quire_tensor* beta; /* f32 [B, S, H]; null: ones */
  const quire_tensor* state_pool;    /* in and out [N, H, V, K] */
  const quire_tensor* state_indices; /* [B] */
  const quire_tensor* state_slots;   /* [B, S] */
  const quire_tensor* output;        /* out [B, S, H, V], q's dtype */
  double scale;
  int32_t use_qk_l2norm;
} quire_gdn_verify_args;

/* E11 (prefill) and E12 (decode): a page table in, i32 [n] tensors out. A decode call has cu_seqlens, prefix_lens and
 * checkpoint_cu_starts null. */
typedef struct quire_gdn_slots_args {
  size_t struct_size;
  const quire_tensor* cu_seqlens;    /* [n + 1] */
  const quire_tensor* page_indices;
  const quire_tensor* page_indptr;   /* [n + 1] */
  const quire_tensor* last_page_len; /* [n] */
  const quire_tensor* state_indices;        /* out */
  const quire_tensor* output_state_indices; /* out */
  const quire_tensor* prefix_lens;          /* out */
  const quire_tensor* checkpoint_cu_starts; /* out */
  int64_t page_size;
} quire_gdn_slots_args;

/* ---- the numerics contract ---- */

/* What arithmetic a backend does for one (op, input dtype, state dtype), from which its tolerance is derived. A unit roundoff is the
 * largest relative error of one rounding to nearest: 2^-53 for float64, 2^-24 for float32, 2^-11 for tf32 and half, 2^-8 for bf16;
 * 0 says that the step is exact. */
typedef struct quire_contract {
  size_t struct_size;
  double u_product;    /* rounding of a product's operands */
  double u_accumulate; /* of each addition */
  double u_store;      /* of intermediates that are stored within a call */
  double u_exp;        /* relative error of exp and its kin */
  int32_t decay_from_log_sums; /* 0: decays are multiplied; 1: exponentiated from sums of logs */
  int32_t chunk_length;        /* over so many tokens; 1 for a token recurrence */
  int32_t batch_invariant;     /* 1: a token's bits do not depend on the rest of the batch */
} quire_contract;

/* ---- the table ---- */

typedef struct quire_stream quire_stream; /* the backend's own; null is synchronous */
typedef struct quire_event quire_event;
typedef struct quire_step quire_step;

enum { QUIRE_BUILD_DEBUG = 1, QUIRE_BUILD_ASAN = 2, QUIRE_BUILD_UBSAN = 4, QUIRE_BUILD_TSAN = 8 };

typedef struct quire_backend_info {
  size_t struct_size;
  const char* name;         /* "reference": what --backend takes */
  const char* version;      /* of the backend's own build */
  const char* description;  /* one line, with what it chose at run time (instruction set, threads) */
  uint64_t dtypes;          /* bit 1 << quire_dtype: tensors that `extend` takes */
  uint64_t float_dtypes;    /* those that attend and the gated delta rule take as q, k, v */
  uint64_t state_dtypes;    /* those of recurrent states */
  int32_t rank;             /* the default backend is the available one of highest rank; negative: never by default */
  uint32_t build;           /* QUIRE_BUILD_* bits */
  const char* driver;       /* driver and runtime with their versions, found or missing, for people; null where there is none to name */
} quire_backend_info;

typedef struct quire_device_info {
  size_t struct_size;
  quire_device device;
  const char* name;
  int64_t memory_bytes; /* 0 where unknown */
  int32_t reads_host;   /* 1: its ops also take calls whose tensors all lie on the host (a CPU's do); 0: tensors must be copied there */
} quire_device_info;

/* A call to be captured: an op and its args, whose tensors become the step's slots in the order of the struct's fields. */
typedef struct quire_call {
  size_t struct_size;
  quire_op op;
  const void* args;
} quire_call;

typedef struct quire_backend_table {
  size_t struct_size;
  uint32_t abi_version;
  uint32_t semantics_version;

  /* What and where. The strings live as long as the plugin. `describe` works without a device too; device_count answers
   * QUIRE_UNAVAILABLE, with the runtime's own words in last_error, where a driver or device is missing. */
  quire_status (*describe)(quire_backend_info* info);
  quire_status (*device_count)(int32_t* count);
  quire_status (*device_info)(int32_t ordinal, quire_device_info* info);

  /* The message of this thread's last failure; valid until its next call. Never null. */
  const char* (*last_error)(void);

  /* Memory of a device, aligned to 256 bytes at least (a CPU's to 64). With a stream: memory that the stream's later work may use, and
   * that is given back when the stream's earlier work is done with it; no host waits. With a null stream: at once, and what still
   * uses freed memory is the caller's mistake. */
  quire_status (*allocate)(quire_device device, quire_stream* stream, size_t bytes, void** data);
  quire_status (*free)(quire_device device, quire_stream* stream, void* data);
  /* Ordered in `stream`; goes between any of the backend's devices and the host. Both memories stay the caller's until the stream
   * passes. */
  quire_status (*copy)(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device,
                       size_t bytes);

  /* Streams are ordered against each other by events only. A stream belongs to a device; one thread at a time uses it. A null stream
   * is no stream: the call is done when it returns, and waits for nothing else. Late errors surface in synchronize and
   * event_synchronize, once. Destroying a stream waits for its work; destroying an event does not. */
  quire_status (*stream_create)(quire_device device, quire_stream** stream);
  quire_status (*stream_destroy)(quire_stream* stream);
  quire_status (*synchronize)(quire_stream* stream);
  quire_status (*event_create)(quire_device device, quire_event** event);
  quire_status (*event_destroy)(quire_event* event);
  quire_status (*event_record)(quire_event* event, quire_stream* stream);
  /* The stream's later work waits for what the event's last record stands behind; for nothing where it was never recorded. The stream may be
   * another device's. */
  quire_status (*event_wait)(quire_event* event, quire_stream* stream);
  /* The host waits for it. */
  quire_status (*event_synchronize)(quire_event* event);

  /* QUIRE_OK: run computes exactly these args (shapes, dtypes, strides, options) rightly. QUIRE_UNSUPPORTED: it does not, and
   * last_error says why. `supports` reads no tensor's data. */
  quire_status (*supports)(quire_op op, const void* args);
  /* Bytes of device memory that `run` needs beside its tensors; 0 where it needs none or brings its own. The host hands in memory aligned
   * as `allocate`'s is. */
  quire_status (*workspace)(quire_op op, const void* args, size_t* bytes);
  /* Asynchronous and ordered within its stream. Structs and shape arrays are copied before it returns; tensors stay the caller's
   * until the stream passes. */
  quire_status (*run)(quire_stream* stream, quire_op op, const void* args, void* workspace, size_t workspace_bytes);

  /* The arithmetic that `run` uses for an op on these dtypes. */
  quire_status (*contract)(quire_op op, quire_dtype input, quire_dtype state, quire_contract* contract);

  /* Steps: capture once, launch with other tensors of equal dtype, shape, strides and device. A step's tensors are those of its calls,
   * call by call in the order of the args struct's fields, an index's own (pos, table, row, block tables, columns, slots, sees) where the index
   * stands; absent ones do not count. Capture copies every scalar, shape and stride and reads no tensor's data; tensors that share memory then
   * share it again at each launch. The step keeps its own workspace, so two launches of one step must be ordered. QUIRE_UNSUPPORTED where a
   * call is not supported or the backend captures nothing. A step may be freed when its launches are done. */
  quire_status (*capture)(quire_device device, const quire_call* calls, int32_t call_count, quire_step** step);
  quire_status (*launch)(quire_stream* stream, quire_step* step, const quire_tensor* const* tensors, int32_t tensor_count);
  quire_status (*step_free)(quire_step* step);
} quire_backend_table;

/* ---- discovery ---- */

typedef struct quire_host {
  size_t struct_size;
  uint32_t abi_version;
  const char* version; /* the library's, for messages */
} quire_host;

/* The one exported symbol of a plugin. Answers its table when it speaks an ABI version in [min_version, max_version], else null with
 * *reason naming the versions it speaks (or why it can't be used at all). The table lives as long as the plugin. */
typedef const quire_backend_table* (*quire_backend_query_fn)(const quire_host* host, uint32_t min_version, uint32_t max_version,
                                                             const char** reason);
#define QUIRE_BACKEND_QUERY_SYMBOL "quire_backend_query"
/* Stands before its definition in a plugin: QUIRE_BACKEND_EXPORT const quire_backend_table* quire_backend_query(...) { ... } */
#ifdef __cplusplus
#define QUIRE_BACKEND_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define QUIRE_BACKEND_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
}
#endif

/* The last field of each struct, so that a reorder or a field inserted before it does not go unseen. 64-bit machines. */
#if defined(__cplusplus)
#define QUIRE_LAST_FIELD(type, field) \
  static_assert(sizeof(type) - offsetof(type, field) <= sizeof(static_cast<type*>(nullptr)->field) + 7, #type " must end with " #field)
#else
#define QUIRE_LAST_FIELD(type, field) \
  _Static_assert(sizeof(type) - offsetof(type, field) <= sizeof(((type*)0)->field) + 7, #type " must end with " #field)
#endif
QUIRE_LAST_FIELD(quire_device, id);
QUIRE_LAST_FIELD(quire_tensor, device);
QUIRE_LAST_FIELD(quire_block_table, blocks);
QUIRE_LAST_FIELD(quire_index, sees);
QUIRE_LAST_FIELD(quire_positions_args, positions);
QUIRE_LAST_FIELD(quire_mask_args, mask);
QUIRE_LAST_FIELD(quire_advance_args, positions);
QUIRE_LAST_FIELD(quire_extend_args, seen);
QUIRE_LAST_FIELD(quire_attend_args, softcap);
QUIRE_LAST_FIELD(quire_gdn_prefill_args, output_state_is_fresh);
QUIRE_LAST_FIELD(quire_gdn_decode_args, use_qk_l2norm);
QUIRE_LAST_FIELD(quire_gdn_verify_args, use_qk_l2norm);
QUIRE_LAST_FIELD(quire_gdn_slots_args, page_size);
QUIRE_LAST_FIELD(quire_contract, batch_invariant);
QUIRE_LAST_FIELD(quire_backend_info, driver);
QUIRE_LAST_FIELD(quire_device_info, reads_host);
QUIRE_LAST_FIELD(quire_call, args);
QUIRE_LAST_FIELD(quire_backend_table, step_free);
QUIRE_LAST_FIELD(quire_host, version);

/* ---- change log ----
 * 0  first form: describe, devices, memory, streams, events, supports, workspace, run, contract, capture. While it was 0: allocate and free
 *    take a stream; event_synchronize; driver; reads_host; the extension device.
 */

#endif /* QUIRE_BACKEND_H */
