/** HPACK, reading side (RFC 7541). */
import { latin1Text } from '../bytes/latin1.ts'
import { type HeaderEntry, headerEntry, kindOfName } from './header-entry.ts'
import { decodeHuffman } from './huffman.ts'
import { staticFields } from './static-table.ts'

/** Gets the fields of a block in order. */
export interface FieldSink {
  /** `isSensitive`: never to be put into a table by anybody (RFC 7541 7.1.3). */
  onField(entry: HeaderEntry, isSensitive: boolean): void
}

const staticEntries: readonly HeaderEntry[] = staticFields.map(([name, value]) =>
  headerEntry(name, value, kindOfName(name)),
)
const staticCount = staticEntries.length

/** Larger integers cannot be an index, a length or a table size that we admit. */
const integerLimit = 2 ** 28

/** Scratch for decoded strings; grows to the largest that was seen. */
let scratch = Buffer.allocUnsafeSlow(4096)

/** One direction of one connection: its table lives as long as that. */
export class HpackDecoder {
  /** Newest last; `#first` is the oldest that counts. */
  #entries: HeaderEntry[] = []
  #first = 0
  #size = 0
  /** What we have announced, and what the peer uses of it. */
  readonly #sizeLimit: number
  #sizeInUse: number
  #bytes: Buffer = scratch
  #at = 0
  #end = 0
  #hasFailed = false

  /** `sizeLimit`: octets that our SETTINGS_HEADER_TABLE_SIZE admits. */
  constructor(sizeLimit = 4096) {
    this.#sizeLimit = sizeLimit
    this.#sizeInUse = sizeLimit
  }

  /** Octets of the dynamic table. */
  get tableSize(): number {
    return this.#size
  }

  /** Reads a whole block; false if it is broken, which ends the connection (COMPRESSION_ERROR). */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    this.#hasFailed = false
    // Changes of the table's size come first in a block (RFC 7541 4.2).
    while (this.#at < end && ((bytes[this.#at] ?? 0) & 0xe0) === 0x20) {
      const size = this.#integer(0x1f)
      if (this.#hasFailed || size > this.#sizeLimit) return false
      this.#sizeInUse = size
      this.#evict(0)
    }
    while (this.#at < end) {
      if (!this.#field(sink)) return false
    }
    return true
  }

  #field(sink: FieldSink): boolean {
    const first = this.#bytes[this.#at] ?? 0
    if ((first & 0x80) !== 0) {
      const entry = this.#lookup(this.#integer(0x7f))
      if (entry === undefined) return false
      sink.onField(entry, false)
      return true
    }
    const isIndexed = (first & 0x40) !== 0
    if (!isIndexed && (first & 0x20) !== 0) return false
    const entry = this.#literal(this.#integer(isIndexed ? 0x3f : 0x0f))
    if (entry === undefined) return false
    if (isIndexed) this.#add(entry)
    sink.onField(entry, (first & 0x50) === 0x10)
    return true
  }

  #literal(nameIndex: number): HeaderEntry | undefined {
    if (this.#hasFailed) return undefined
    const named = nameIndex === 0 ? undefined : this.#lookup(nameIndex)
    if (nameIndex !== 0 && named === undefined) return undefined
    const name = named?.name ?? this.#string()
    const value = this.#string()
    if (this.#hasFailed) return undefined
    return headerEntry(name, value, named?.nameKind ?? kindOfName(name))
  }

  #lookup(index: number): HeaderEntry | undefined {
    if (this.#hasFailed || index === 0) return undefined
    if (index <= staticCount) return staticEntries[index - 1]
    const at = this.#entries.length - (index - staticCount)
    return at < this.#first ? undefined : this.#entries[at]
  }

  #add(entry: HeaderEntry): void {
    this.#evict(entry.size)
    // An entry that is larger than the table empties it (RFC 7541 4.4).
    if (entry.size > this.#sizeInUse) return
    this.#entries.push(entry)
    this.#size += entry.size
  }

  /** Makes room, oldest first. */
  #evict(room: number): void {
    while (this.#size + room > this.#sizeInUse && this.#first < this.#entries.length) {
      this.#size -= this.#entries[this.#first]?.size ?? 0
      this.#first++
    }
    if (this.#first > 128) {
      this.#entries = this.#entries.slice(this.#first)
      this.#first = 0
    }
  }

  /** RFC 7541 5.1; `mask` is the prefix that the first byte has for it. */
  #integer(mask: number): number {
    let value = (this.#bytes[this.#at++] ?? 0) & mask
    if (value < mask) return value
    for (let unit = 1; ; unit *= 128) {
      const byte = this.#at < this.#end ? (this.#bytes[this.#at] ?? 0) : -1
      this.#at++
      value += (byte & 0x7f) * unit
      if (byte < 0 || value > integerLimit || unit > integerLimit) {
        this.#hasFailed = true
        return 0
      }
      if (byte < 0x80) return value
    }
  }

  #string(): string {
    if (this.#at >= this.#end) this.#hasFailed = true
    if (this.#hasFailed) return ''
    const isCoded = ((this.#bytes[this.#at] ?? 0) & 0x80) !== 0
    const length = this.#integer(0x7f)
    const start = this.#at
    if (this.#hasFailed || length > this.#end - start) {
      this.#hasFailed = true
      return ''
    }
    this.#at = start + length
    if (!isCoded) return latin1Text(this.#bytes, start, this.#at)
    if (scratch.length < length * 2) scratch = Buffer.allocUnsafeSlow(length * 2)
    const decoded = decodeHuffman(this.#bytes, start, this.#at, scratch)
    if (decoded < 0) {
      this.#hasFailed = true
      return ''
    }
    return latin1Text(scratch, 0, decoded)
  }
}
