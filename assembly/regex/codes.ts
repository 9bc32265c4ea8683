// Limits of the regex engine, and the failure of the compile in progress. The codes are in ../abi.ts.

export const REGEX_SYNTAX_FLAGS: i32 = 15
export const REGEX_ALL_FLAGS: i32 = 31

export const MAX_PATTERN_BYTES: i32 = 8192
export const MAX_NESTING: i32 = 200
export const MAX_REPEAT: i32 = 1000
export const MAX_INSTRUCTIONS: u32 = 32768
/** Maximum visits of syntax nodes during a compile; bounds nested repetitions of nothing. */
export const MAX_COMPILE_STEPS: u32 = 1 << 18
export const MAX_CODE_POINT: u32 = 0x10ffff

/** Size of a DFA cache (64 KiB with the block's head). A regex without one is simulated, with the same results. */
export const CACHE_BYTES: u32 = 65520
export const MAX_CACHES: i32 = 16

/** First failure of the compile in progress, or 0. */
export let errorCode: i32 = 0
export let errorOffset: i32 = 0

export function clearError(): void {
  errorCode = 0
  errorOffset = 0
}

/** Records the first failure and ignores later ones, which are its consequences. Always returns 0, 'no node'. */
export function fail(code: i32, offset: i32): usize {
  if (errorCode == 0) {
    errorCode = code
    errorOffset = offset
  }
  return 0
}

/**
 * Finding all matches may read a byte again for each match that looks ahead (`a.*b|a` reads the rest of
 * the text for every a). The search stops with REGEX_TOO_MUCH_WORK after READS_FREE bytes and this many times
 * the length of the text.
 */
export const READS_LIMIT: i32 = 256
export const READS_FREE: i32 = 1 << 22
