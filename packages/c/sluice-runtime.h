/* What the C that wasm2c generates needs: memory, traps, and vectors of 16 bytes. Programs include sluice.h instead. */
#ifndef SLUICE_RUNTIME_H
#define SLUICE_RUNTIME_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__GNUC__) || !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "sluice needs GCC or Clang, and a little-endian processor"
#endif

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define wasm_rt_memcpy __builtin_memcpy
#define wasm_rt_unreachable __builtin_unreachable

/* Every access to memory is checked, so that the host needs no handler of signals. */
#define WASM_RT_MEMCHECK_BOUNDS_CHECK 1
#define WASM_RT_MEMCHECK_GUARD_PAGES 0
#define WASM_RT_USE_SEGUE 0
#define WASM_RT_SANITY_CHECKS 0
#define WASM_RT_STACK_DEPTH_COUNT 1
#define WASM_RT_MAX_CALL_STACK_DEPTH 1000

typedef enum {
  WASM_RT_TRAP_OOB = 1,
  WASM_RT_TRAP_INT_OVERFLOW,
  WASM_RT_TRAP_DIV_BY_ZERO,
  WASM_RT_TRAP_INVALID_CONVERSION,
  WASM_RT_TRAP_UNREACHABLE,
  WASM_RT_TRAP_CALL_INDIRECT,
  WASM_RT_TRAP_EXHAUSTION
} wasm_rt_trap_t;

typedef enum { WASM_RT_I32, WASM_RT_I64, WASM_RT_F32, WASM_RT_F64, WASM_RT_V128 } wasm_rt_type_t;

typedef struct {
  uint8_t *data;
  uint64_t pages, max_pages, size;
} wasm_rt_memory_t;

/* The modules have no tables of references, but the functions that all generated files begin with name them. */
typedef void (*wasm_rt_function_ptr_t)(void);
typedef struct wasm_rt_tailcallee_t {
  void (*fn)(void **, void *, struct wasm_rt_tailcallee_t *);
} wasm_rt_tailcallee_t;
typedef const char *wasm_rt_func_type_t;
typedef struct {
  wasm_rt_func_type_t func_type;
  wasm_rt_function_ptr_t func;
  wasm_rt_tailcallee_t func_tailcallee;
  void *module_instance;
} wasm_rt_funcref_t;
typedef void *wasm_rt_externref_t;
typedef struct {
  wasm_rt_funcref_t *data;
  uint32_t max_size, size;
} wasm_rt_funcref_table_t;
typedef struct {
  wasm_rt_externref_t *data;
  uint32_t max_size, size;
} wasm_rt_externref_table_t;
#define wasm_rt_funcref_null_value ((wasm_rt_funcref_t){NULL, NULL, {NULL}, NULL})
#define wasm_rt_externref_null_value NULL

extern _Thread_local uint32_t wasm_rt_call_stack_depth;
__attribute__((noreturn)) void wasm_rt_trap(wasm_rt_trap_t reason);
static inline bool wasm_rt_is_initialized(void) { return true; }
void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint64_t pages, uint64_t max_pages, bool is64, uint32_t page_size);
uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint64_t delta);
void wasm_rt_free_memory(wasm_rt_memory_t *memory);

/* The vector instructions that the modules use, under the names that wasm2c gives them. */
#define WASM_RT_SIMD_TYPE_DEFINED
typedef uint8_t v128 __attribute__((vector_size(16)));
typedef int8_t sluice_s8x16 __attribute__((vector_size(16)));
typedef uint32_t sluice_u32x4 __attribute__((vector_size(16)));
typedef uint64_t sluice_u64x2 __attribute__((vector_size(16)));

#define simde_wasm_i8x16_const(...) ((v128){__VA_ARGS__})
#define simde_wasm_i64x2_make(a, b) ((v128)(sluice_u64x2){a, b})
#define simde_wasm_i8x16_splat(x) ((v128){0} + (uint8_t)(x))
#define simde_wasm_i32x4_splat(x) ((v128)((sluice_u32x4){0} + (uint32_t)(x)))
#define simde_wasm_i32x4_extract_lane(v, lane) (((sluice_u32x4)(v))[lane])
#define simde_wasm_i64x2_extract_lane(v, lane) (((sluice_u64x2)(v))[lane])
#define simde_wasm_v128_and(a, b) ((a) & (b))
#define simde_wasm_v128_andnot(a, b) ((a) & ~(b))
#define simde_wasm_v128_or(a, b) ((a) | (b))
#define simde_wasm_v128_xor(a, b) ((a) ^ (b))
#define simde_wasm_i8x16_sub(a, b) ((a) - (b))
#define simde_wasm_i8x16_eq(a, b) ((v128)((a) == (b)))
#define simde_wasm_i8x16_ne(a, b) ((v128)((a) != (b)))
#define simde_wasm_i8x16_lt(a, b) ((v128)((sluice_s8x16)(a) < (sluice_s8x16)(b)))
#define simde_wasm_u8x16_lt(a, b) ((v128)((a) < (b)))
#define simde_wasm_u8x16_shr(a, count) ((a) >> (v128)((v128){0} + (uint8_t)((count)&7)))
#define simde_wasm_i32x4_eq(a, b) ((v128)((sluice_u32x4)(a) == (sluice_u32x4)(b)))

static inline v128 simde_wasm_v128_load(const void *from) {
  v128 loaded;
  memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

static inline void simde_wasm_v128_store(void *to, v128 value) { memcpy(to, &value, sizeof value); }

static inline uint32_t simde_wasm_v128_any_true(v128 v) {
  sluice_u64x2 halves = (sluice_u64x2)v;
  return (halves[0] | halves[1]) != 0;
}

static inline v128 simde_wasm_u32x4_min(v128 a, v128 b) {
  v128 is_less = (v128)((sluice_u32x4)a < (sluice_u32x4)b);
  return (a & is_less) | (b & ~is_less);
}

static inline uint32_t simde_wasm_i8x16_bitmask(v128 v) {
#ifdef __SSE2__
  typedef char chars __attribute__((vector_size(16)));
  return (uint32_t)__builtin_ia32_pmovmskb128((chars)v);
#else
  /* Gathers the highest bits of 8 bytes in the highest byte of a product. */
  sluice_u64x2 halves = ((sluice_u64x2)v >> 7) & 0x0101010101010101u;
  halves = (halves * 0x0102040810204080u) >> 56;
  return (uint32_t)(halves[0] | halves[1] << 8);
#endif
}

static inline uint32_t simde_wasm_i32x4_bitmask(v128 v) {
  sluice_u32x4 lanes = (sluice_u32x4)v >> 31;
  return lanes[0] | lanes[1] << 1 | lanes[2] << 2 | lanes[3] << 3;
}

static inline v128 simde_wasm_i8x16_swizzle(v128 v, v128 indexes) {
#ifdef __SSSE3__
  typedef char chars __attribute__((vector_size(16)));
  /* Indexes of 16 and more give 0: the highest bit says so to pshufb. */
  v128 is_out = (v128)(indexes > 15);
  return (v128)__builtin_ia32_pshufb128((chars)v, (chars)(indexes | is_out));
#else
  v128 out;
  for (int i = 0; i < 16; i++) out[i] = indexes[i] < 16 ? v[indexes[i] & 15] : 0;
  return out;
#endif
}

#if defined(__clang__) || __GNUC__ >= 12
#define simde_wasm_i8x16_shuffle(a, b, ...) ((v128)__builtin_shufflevector(a, b, __VA_ARGS__))
#else
#define simde_wasm_i8x16_shuffle(a, b, ...) __builtin_shuffle(a, b, (v128){__VA_ARGS__})
#endif

#endif
