// Error codes, flags and limits of the regex engine. Codes are part of the ABI and are never reused
// each is returned by `regex_compile` as it stands, with the byte offset in `regex_error_offset`.

/** The handle is unknown or was freed. */
export const REGEX_BAD_HANDLE: i32 = -100
/** No room is left in the regex heap of this instance. */
export const REGEX_OUT_OF_MEMORY: i32 = -101
/** The pattern is longer than MAX_PATTERN_BYTES. */
export const REGEX_PATTERN_TOO_LONG: i32 = -102
/** The pattern compiles to more than MAX_INSTRUCTIONS, or takes more than MAX_COMPILE_STEPS. */
export const REGEX_PROGRAM_TOO_LARGE: i32 = -103
/** Groups nest deeper than MAX_NESTING. */
export const REGEX_NESTED_TOO_DEEP: i32 = -104
/** The operation needs start positions, and the regex was compiled with REGEX_MATCH_ONLY. */
export const REGEX_NO_SPANS: i32 = -105
/** The pattern is not valid UTF-8. */
export const REGEX_BAD_UTF8: i32 = -110
/** A `(` without its `)`, or the reverse. */
export const REGEX_UNBALANCED_PAREN: i32 = -111
/** A `[` without its `]`. */
export const REGEX_UNCLOSED_CLASS: i32 = -112
/** A class range that runs backwards, or has a class as an end. */
export const REGEX_BAD_RANGE: i32 = -113
/** An escape that the syntax does not define. */
export const REGEX_BAD_ESCAPE: i32 = -114
/** The pattern ends in a single backslash. */
export const REGEX_TRAILING_BACKSLASH: i32 = -115
/** A quantifier with nothing before it. */
export const REGEX_NOTHING_TO_REPEAT: i32 = -116
/** A quantifier directly after a quantifier. */
export const REGEX_NESTED_QUANTIFIER: i32 = -117
/** A count above MAX_REPEAT, or {n,m} with n > m. */
export const REGEX_BAD_REPEAT: i32 = -118
/** An unknown `(?` construct or flag, or a malformed group name. */
export const REGEX_BAD_GROUP: i32 = -119
/** An unknown \p{...} property or [:name:]. */
export const REGEX_UNKNOWN_CLASS: i32 = -120
/** Look-ahead or look-behind: cannot be matched in linear time, refused. */
export const REGEX_LOOKAROUND: i32 = -130
/** A back-reference: cannot be matched in linear time, refused. */
export const REGEX_BACKREFERENCE: i32 = -131
/** An atomic group or a possessive quantifier, refused. */
export const REGEX_ATOMIC: i32 = -132

/** `regex_compile` flags: as if the pattern began with (?i), (?m), (?s), (?U). */
export const REGEX_CASE_INSENSITIVE: i32 = 1
export const REGEX_MULTI_LINE: i32 = 2
export const REGEX_DOT_ALL: i32 = 4
export const REGEX_SWAP_GREED: i32 = 8
/** Compile only what `regex_is_match` and `regex_full_match` need: about half the memory. */
export const REGEX_MATCH_ONLY: i32 = 16
export const REGEX_SYNTAX_FLAGS: i32 = 15
export const REGEX_ALL_FLAGS: i32 = 31

export const MAX_PATTERN_BYTES: i32 = 8192
export const MAX_NESTING: i32 = 200
export const MAX_REPEAT: i32 = 1000
export const MAX_INSTRUCTIONS: u32 = 32768
/** Visits of syntax nodes while compiling; bounds repeats of repeats of nothing. */
export const MAX_COMPILE_STEPS: u32 = 1 << 18
export const MAX_CODE_POINT: u32 = 0x10ffff

/** One DFA cache, and how many an instance keeps; a regex without one is simulated, equally right. */
export const CACHE_BYTES: u32 = 1 << 16
export const MAX_CACHES: i32 = 16

/** First failure of the compile in progress; 0 while there is none. */
export let errorCode: i32 = 0
export let errorOffset: i32 = 0

export function clearError(): void {
  errorCode = 0
  errorOffset = 0
}

/** Records the first failure; later ones are its consequences. Always returns 0, 'no node'. */
export function fail(code: i32, offset: i32): usize {
  if (errorCode == 0) {
    errorCode = code
    errorOffset = offset
  }
  return 0
}
