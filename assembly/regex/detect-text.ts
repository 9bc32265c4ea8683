// The text in which detectors look, of which the end may not have arrived.
let text: usize = 0
let length: i32 = 0
/** True if a byte after the end was read since `detectIn`. */
export let ranOut: bool = false

/** Sets the text for the next detections. */
export function detectIn(start: usize, bytes: i32): void {
  text = start
  length = bytes
  ranOut = false
}

/** Forgets that a byte after the end was read. */
export function clearRanOut(): void {
  ranOut = false
}

// @ts-ignore: decorator
@inline
export function at(offset: i32): u32 {
  if (offset < length) return <u32>load<u8>(text + offset)
  ranOut = true
  return 0
}
