/**
 * Canonical JSON: object keys are sorted by UTF-16 code units, there is no white space, and `undefined` members
 * are left out. Equal values give equal bytes everywhere, so that digests can be compared.
 *
 * The bytes are written to one buffer that all calls share, because most of them are only hashed: a replay
 * would otherwise spend a tenth of its time on texts and their garbage.
 */

/** The buffer grows to the largest value that was written, and is replaced if that was larger than this. */
const keptBytes = 1_048_576

let bytes = new Uint8Array(65_536)
let end = 0

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function canonicalJson(value: unknown): string {
  const text = decoder.decode(canonicalBytes(value))
  release()
  return text
}

/** Canonical JSON as UTF-8, after the UTF-8 of a prefix. The bytes are valid until the next call. */
export function canonicalBytes(value: unknown, prefix = ''): Uint8Array {
  release()
  end = 0
  writeText(prefix)
  writeValue(value)
  return bytes.subarray(0, end)
}

function release(): void {
  if (bytes.length > keptBytes) bytes = new Uint8Array(65_536)
}

function makeRoom(count: number): void {
  if (end + count <= bytes.length) return
  const larger = new Uint8Array(Math.max(bytes.length * 2, end + count))
  larger.set(bytes.subarray(0, end))
  bytes = larger
}

function writeByte(byte: number): void {
  makeRoom(1)
  bytes[end++] = byte
}

/** Copying the characters of a short text is cheaper than encoding them. */
function writeText(text: string): void {
  // A UTF-16 unit has at most three bytes in UTF-8.
  makeRoom(text.length * 3)
  let at = end
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > 0x7e) {
      end += encoder.encodeInto(text, bytes.subarray(end)).written
      return
    }
    bytes[at++] = unit
  }
  end = at
}

function writeValue(value: unknown): void {
  if (typeof value === 'string') writeString(value)
  else if (value === null || typeof value !== 'object') writeText(JSON.stringify(value) ?? 'null')
  else if (Array.isArray(value)) writeList(value)
  else writeRecord(value as Record<string, unknown>)
}

/** Most strings need no escapes. */
function writeString(text: string): void {
  makeRoom(text.length + 2)
  let at = end
  bytes[at++] = 0x22
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) {
      writeText(JSON.stringify(text))
      return
    }
    bytes[at++] = unit
  }
  bytes[at++] = 0x22
  end = at
}

function writeList(list: readonly unknown[]): void {
  writeByte(0x5b)
  for (let index = 0; index < list.length; index++) {
    if (index > 0) writeByte(0x2c)
    writeValue(list[index])
  }
  writeByte(0x5d)
}

function writeRecord(record: Readonly<Record<string, unknown>>): void {
  writeByte(0x7b)
  const begin = end
  for (const key of sortedKeys(record)) writeMember(key, record[key], begin)
  writeByte(0x7d)
}

function writeMember(key: string, value: unknown, begin: number): void {
  if (value === undefined) return
  if (end > begin) writeByte(0x2c)
  writeString(key)
  writeByte(0x3a)
  writeValue(value)
}

/**
 * A sequence of keys, as a node of a tree of sequences. Most records have the same keys in the same order as an earlier
 * record, so their sorted keys are found in the tree without comparing texts.
 */
class KeySequence {
  readonly #keys: readonly string[]
  #sorted: readonly string[] | undefined
  /** The key that continued the sequence last. Most sequences continue with one key only. */
  #lastKey: string | undefined
  #last: KeySequence | undefined
  readonly #others = new Map<string, KeySequence>()

  constructor(keys: readonly string[]) {
    this.#keys = keys
  }

  get sorted(): readonly string[] {
    this.#sorted ??= this.#keys.toSorted()
    return this.#sorted
  }

  /** Returns this sequence with one more key; undefined if the sequence or the key is too long. */
  with(key: string): KeySequence | undefined {
    if (key === this.#lastKey) return this.#last
    let found = this.#others.get(key)
    if (found === undefined) {
      if (this.#keys.length >= maxKeys || key.length > maxKeyLength) return undefined
      found = new KeySequence([...this.#keys, key])
      this.#others.set(key, found)
      sequences++
    }
    this.#lastKey = key
    this.#last = found
    return found
  }
}

/** Longer records and keys, which users may have written, are sorted each time. */
const maxKeys = 24
const maxKeyLength = 64
/** The tree is emptied when it has more sequences than this. */
const maxSequences = 4_096

let sequences = 0
let noKeys = new KeySequence([])

function sortedKeys(record: Readonly<Record<string, unknown>>): readonly string[] {
  if (sequences > maxSequences) {
    sequences = 0
    noKeys = new KeySequence([])
  }
  let sequence: KeySequence | undefined = noKeys
  for (const key in record) {
    sequence = sequence.with(key)
    if (sequence === undefined) return Object.keys(record).sort()
  }
  return sequence.sorted
}
