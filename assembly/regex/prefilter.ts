// Vector loops that skip text in which nothing can begin. They read whole vectors: up to 15 bytes behind
// the text are looked at (every block has that slack) and never answered.

// @ts-ignore: decorator
@inline
function digitsAndSigns(v: v128): v128 {
  const digits = i8x16.lt_u(i8x16.sub(v, i8x16.splat(48)), i8x16.splat(10))
  const plus = i8x16.eq(v, i8x16.splat(43))
  const bracket = i8x16.eq(v, i8x16.splat(40))
  return v128.or(digits, v128.or(plus, bracket))
}

/** The first digit, '+' or '(' (if `numbers`) or '@' (if `emails`) from `from` on, or `length`. */
export function nextTrigger(text: usize, from: i32, length: i32, numbers: bool, emails: bool): i32 {
  const at = i8x16.splat(64)
  for (let i = from; i < length; i += 16) {
    const v = v128.load(text + i)
    let hits = emails ? i8x16.eq(v, at) : i8x16.splat(0)
    if (numbers) hits = v128.or(hits, digitsAndSigns(v))
    const mask = i8x16.bitmask(hits)
    if (mask != 0) return min(i + ctz(mask), length)
  }
  return length
}
