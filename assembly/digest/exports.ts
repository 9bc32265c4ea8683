/**
 * Keyed digests of header fields, by which two values can be compared without being known:
 * SipHash-1-3 (Aumasson and Bernstein, 2012) with 64 bits.
 */

/** Bytes of one field in `spans`: start and end of the name, of the value, and a word not read here. */
const SPAN_SIZE: usize = 20

/**
 * Writes to `out`, for each field, the digest of its name in lower case and that of its value (16
 * bytes a field). `spans` are offsets from `bytes`; `key` has 16 bytes.
 */
export function digest_fields(
  bytes: usize,
  spans: usize,
  count: i32,
  key: usize,
  out: usize,
): void {
  const k0 = load<u64>(key)
  const k1 = load<u64>(key, 8)
  for (let field = 0; field < count; field++) {
    store<u64>(out, sipHash(bytes + load<u32>(spans), bytes + load<u32>(spans, 4), k0, k1, true))
    const end = bytes + load<u32>(spans, 12)
    store<u64>(out, sipHash(bytes + load<u32>(spans, 8), end, k0, k1, false), 8)
    spans += SPAN_SIZE
    out += 16
  }
}

/** ASCII letters in lower case; other bytes stay. */
// @ts-ignore: decorator
@inline
function lowerCase(word: u64): u64 {
  const low = word & 0x7f7f7f7f7f7f7f7f
  const fromA = low + 0x3f3f3f3f3f3f3f3f
  const aboveZ = low + 0x2525252525252525
  return word | (((fromA ^ aboveZ) & ~word & 0x8080808080808080) >> 2)
}

let v0: u64 = 0
let v1: u64 = 0
let v2: u64 = 0
let v3: u64 = 0

// @ts-ignore: decorator
@inline
function round(): void {
  v0 += v1
  v1 = rotl(v1, 13) ^ v0
  v0 = rotl(v0, 32)
  v2 += v3
  v3 = rotl(v3, 16) ^ v2
  v0 += v3
  v3 = rotl(v3, 21) ^ v0
  v2 += v1
  v1 = rotl(v1, 17) ^ v2
  v2 = rotl(v2, 32)
}

// @ts-ignore: decorator
@inline
function take(word: u64): void {
  v3 ^= word
  round()
  v0 ^= word
}

function sipHash(start: usize, end: usize, k0: u64, k1: u64, folds: bool): u64 {
  v0 = k0 ^ 0x736f6d6570736575
  v1 = k1 ^ 0x646f72616e646f6d
  v2 = k0 ^ 0x6c7967656e657261
  v3 = k1 ^ 0x7465646279746573
  let p = start
  for (; p + 8 <= end; p += 8) {
    const word = load<u64>(p)
    take(folds ? lowerCase(word) : word)
  }
  let rest: u64 = 0
  for (let shift: u64 = 0; p < end; p++, shift += 8) rest |= (<u64>load<u8>(p)) << shift
  if (folds) rest = lowerCase(rest)
  take(rest | ((<u64>(end - start)) << 56))
  v2 ^= 0xff
  round()
  round()
  round()
  return v0 ^ v1 ^ v2 ^ v3
}
