// The text of a builtin's pattern while it is written.
import { blockAlloc, blockFree } from '../arena'

const PATTERN_BYTES: usize = 8192
export let pattern: usize = 0
export let patternLength: i32 = 0

/** Begins a pattern. Returns false if there is no memory. */
export function beginPattern(): bool {
  patternLength = 0
  pattern = blockAlloc(PATTERN_BYTES)
  return pattern != 0
}

/** Appends ASCII text to the pattern. */
export function add(text: string): void {
  for (let i = 0; i < text.length; i++) store<u8>(pattern + <usize>(patternLength + i), <u8>text.charCodeAt(i))
  patternLength += text.length
}

export function endPattern(): void {
  blockFree(pattern)
}
