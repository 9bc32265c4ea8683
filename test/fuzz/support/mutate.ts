import { type Random, randomOf } from './random.ts'
import type { FuzzTarget } from './target.ts'

type Bytes = string | Uint8Array

const largest = 64 * 1024
const edges = [0, 1, 2, 0x7f, 0x80, 0xff, 0x0a, 0x0d, 0x20, 0x22, 0x3a]

/** Strings that are made of bytes are written as UTF-8. */
export const bufferOf = (bytes: Bytes): Buffer => Buffer.from(bytes)

const splice = (bytes: Buffer, at: number, removed: number, added: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])

/** One change of one place. `words` and `others` are what may be put there. */
function change(
  random: Random,
  bytes: Buffer,
  words: readonly Bytes[],
  others: readonly Bytes[],
): Buffer {
  const at = random.below(bytes.length + 1)
  const span = Math.min(bytes.length - at, random.length(64))
  const part = bytes.subarray(at, at + span)
  switch (random.below(8)) {
    case 0:
      return splice(bytes, at, span, new Uint8Array())
    case 1:
      return splice(bytes, at, 0, Buffer.concat(Array(1 + random.length(20)).fill(part)))
    case 2:
      return splice(bytes, at, span, random.bytes(span))
    case 3:
      return splice(bytes, at, random.below(2), Buffer.from([random.pick(edges)]))
    case 4: {
      const other = bufferOf(others.length === 0 ? '' : random.pick(others))
      const from = random.below(other.length + 1)
      return splice(bytes, at, span, other.subarray(from, from + random.length(200)))
    }
    case 5: {
      const copy = Buffer.from(bytes)
      if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8))
      return copy
    }
    default:
      if (words.length === 0) return splice(bytes, at, 1, random.bytes(1))
      return splice(bytes, at, random.oneIn(2) ? span : 0, bufferOf(random.pick(words)))
  }
}

/** A sample with one to eight changes; the same sample now and then. */
export function mutate(
  random: Random,
  samples: readonly Bytes[],
  words: readonly Bytes[] = [],
): Buffer {
  let bytes = bufferOf(random.pick(samples))
  for (let left = random.length(9); left > 0; left--) {
    bytes = change(random, bytes, words, samples).subarray(0, largest)
  }
  return bytes
}

/** The input of one index: target, seed and index always give the same one. */
export function inputOf(target: FuzzTarget, seed: number, index: number): Buffer {
  const random = randomOf(seed, index)
  if (target.generate !== undefined) return bufferOf(target.generate(random))
  return mutate(random, target.samples ?? [''], target.words)
}
