/* Compares the vector instructions that have several versions with their definition. Exits with 1 if one differs. */
#include "sluice-runtime.h"

static uint32_t bits_of(const uint8_t *bytes, int stride) {
  uint32_t bits = 0;
  for (int i = 0; i < 16 / stride; i++) bits |= (uint32_t)(bytes[i * stride + stride - 1] >> 7) << i;
  return bits;
}

int main(void) {
  uint32_t state = 1;
  for (int round = 0; round < 10000; round++) {
    uint8_t a[16], indexes[16], swizzled[16], shuffled[16];
    for (int i = 0; i < 32; i++) {
      state = state * 1664525 + 1013904223;
      /* Indexes are small in every other round. */
      if (i < 16) a[i] = (uint8_t)(state >> 24);
      else indexes[i - 16] = (uint8_t)(round % 2 == 0 ? state >> 28 : state >> 24);
    }
    v128 v = simde_wasm_v128_load(a), w = simde_wasm_v128_load(indexes);
    if (simde_wasm_i8x16_bitmask(v) != bits_of(a, 1) || simde_wasm_i32x4_bitmask(v) != bits_of(a, 4)) return 1;
    for (int i = 0; i < 16; i++) {
      swizzled[i] = indexes[i] < 16 ? a[indexes[i]] : 0;
      shuffled[i] = i % 2 == 0 ? a[15 - i] : indexes[i];
    }
    v128 shuffle = simde_wasm_i8x16_shuffle(v, w, 15, 17, 13, 19, 11, 21, 9, 23, 7, 25, 5, 27, 3, 29, 1, 31);
    v128 swizzle = simde_wasm_i8x16_swizzle(v, w);
    if (memcmp(&swizzle, swizzled, 16) != 0 || memcmp(&shuffle, shuffled, 16) != 0) return 1;
  }
  return 0;
}
