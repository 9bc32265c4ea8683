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

/** Many records are already in order. Their keys need no list. */
function writeRecord(record: Readonly<Record<string, unknown>>): void {
  writeByte(0x7b)
  const begin = end
  if (isInOrder(record)) for (const key in record) writeMember(key, record[key], begin)
  else for (const key of sortedKeys(record)) writeMember(key, record[key], begin)
  writeByte(0x7d)
}

function writeMember(key: string, value: unknown, begin: number): void {
  if (value === undefined) return
  if (end > begin) writeByte(0x2c)
  writeString(key)
  writeByte(0x3a)
  writeValue(value)
}

function isInOrder(record: Readonly<Record<string, unknown>>): boolean {
  let before = ''
  for (const key in record) {
    if (key < before) return false
    before = key
  }
  return true
}

/** `sort` allocates several times what a short list needs. */
function sortedKeys(record: Readonly<Record<string, unknown>>): readonly string[] {
  const keys = Object.keys(record)
  if (keys.length > 16) return keys.sort()
  for (let at = 1; at < keys.length; at++) {
    const key = keys[at] as string
    let place = at
    for (; place > 0 && (keys[place - 1] as string) > key; place--) {
      keys[place] = keys[place - 1] as string
    }
    keys[place] = key
  }
  return keys
}
