import type { IoCore } from './io-core.ts'

/** Most bytes of a head, and most of its fields; what lies beyond is not digested. */
const mostBytes = 16 * 1024
const mostFields = 128
/** Numbers that describe one field: name start and end, value start and end, and one that is not read. */
const stride = 5
const digestBytes = 16

/** Keyed digests of the fields of one head at a time. */
export class FieldDigests {
  /** Fields that the last call digested. */
  count = 0
  readonly #core: IoCore
  readonly #head: number
  readonly #spans: number
  readonly #key: number
  readonly #out: number

  /** `key`: 16 bytes. */
  constructor(core: IoCore, key: Uint8Array) {
    this.#core = core
    this.#head = core.allocate(mostBytes)
    this.#spans = core.allocate(mostFields * stride * 4)
    this.#key = core.allocate(digestBytes)
    this.#out = core.allocate(mostFields * digestBytes)
    core.bytes.set(key.subarray(0, digestBytes), this.#key)
  }

  /** Loads the fields of a head in `bytes` at `base`; `spans` are relative to it. */
  load(bytes: Buffer, base: number, spans: Int32Array, count: number): void {
    this.count = Math.min(count, mostFields)
    while (this.count > 0 && (spans[this.count * stride - 2] ?? 0) > mostBytes) this.count--
    if (this.count === 0) return
    // Views of a part would be objects of every request: copied by offsets and by number instead.
    const end = spans[this.count * stride - 2] ?? 0
    bytes.copy(this.#core.bytes, this.#head, base, base + end)
  }

  /** Digests all lines of the loaded fields as one value, that of field 0. */
  digestWhole(spans: Int32Array): void {
    const { words, exports } = this.#core
    const to = this.#spans >> 2
    words[to] = 0
    words[to + 1] = 0
    words[to + 2] = spans[0] ?? 0
    words[to + 3] = spans[this.count * stride - 2] ?? 0
    exports.digest_fields(this.#head, this.#spans, 1, this.#key, this.#out)
  }

  /** Digests the name and the value of each loaded field. */
  digestEach(spans: Int32Array): void {
    const { words, exports } = this.#core
    const to = this.#spans >> 2
    const length = this.count * stride
    for (let at = 0; at < length; at++) words[to + at] = spans[at] ?? 0
    exports.digest_fields(this.#head, this.#spans, this.count, this.#key, this.#out)
  }

  /** Half a digest of a name: 0 or 1. */
  name(field: number, half: 0 | 1): number {
    return this.#core.words[(this.#out >> 2) + field * 4 + half] ?? 0
  }

  /** Half a digest of a value: 0 or 1. */
  value(field: number, half: 0 | 1): number {
    return this.#core.words[(this.#out >> 2) + field * 4 + 2 + half] ?? 0
  }

  /** The memory of the digests. */
  get bytes(): Uint8Array {
    return this.#core.bytes
  }

  /** Offset in `bytes` of the 8 bytes of the digest of a value. */
  valueAt(field: number): number {
    return this.#out + field * digestBytes + 8
  }
}
