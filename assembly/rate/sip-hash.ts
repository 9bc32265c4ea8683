/**
 * SipHash-2-4 (Aumasson, Bernstein 2012) of a bucket's id and key under a secret of 16 bytes: who
 * chooses keys cannot choose which of them meet in a group of the table.
 */

let v0: u64 = 0
let v1: u64 = 0
let v2: u64 = 0
let v3: u64 = 0

function round(): void {
  v0 += v1
  v2 += v3
  v1 = rotl(v1, 13) ^ v0
  v3 = rotl(v3, 16) ^ v2
  v0 = rotl(v0, 32)
  v2 += v1
  v0 += v3
  v1 = rotl(v1, 17) ^ v2
  v3 = rotl(v3, 21) ^ v0
  v2 = rotl(v2, 32)
}

function absorb(word: u64): void {
  v3 ^= word
  round()
  round()
  v0 ^= word
}

export function sipHash(secret: usize, id: i32, key: usize, length: i32): u64 {
  const k0 = load<u64>(secret)
  const k1 = load<u64>(secret, 8)
  v0 = k0 ^ 0x736f6d6570736575
  v1 = k1 ^ 0x646f72616e646f6d
  v2 = k0 ^ 0x6c7967656e657261
  v3 = k1 ^ 0x7465646279746573
  absorb(<u64><u32>id)
  const whole = key + <usize>(length & ~7)
  for (let at = key; at < whole; at += 8) absorb(load<u64>(at))
  let last = <u64>(length + 8) << 56
  for (let i = 0; i < (length & 7); i++) last |= <u64>load<u8>(whole + i) << <u64>(i << 3)
  absorb(last)
  v2 ^= 0xff
  round()
  round()
  round()
  round()
  return v0 ^ v1 ^ v2 ^ v3
}
