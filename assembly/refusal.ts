/** What the last refused call tripped over, for `last_error` and `last_error_offset`. */

let code: i32 = 0
let offset: i32 = -1
let origin: usize = 0

/** Offsets of later refusals count from here. */
// @ts-ignore: decorator
@inline
export function setOrigin(start: usize): void {
  origin = start
}

/** Records the reason and the offset at which a call fails; returns the code. */
export function refuse(reason: i32, at: usize): i32 {
  code = reason
  offset = <i32>(at - origin)
  return reason
}

/** Notes a reason that has no place in the input; returns the code. */
export function fail(reason: i32): i32 {
  code = reason
  offset = -1
  return reason
}

export function lastCode(): i32 {
  return code
}

export function lastOffset(): i32 {
  return offset
}
