/** Decoder of HPACK (RFC 7541). */
import { latin1Text } from '../../../ground/base/latin1.ts'
import { ConnectionError, errorCodes } from './frames.ts'
import { type HeaderEntry, headerEntry, kindOfName } from './header-entry.ts'
import { decodeHuffman } from './huffman.ts'
import { staticFields } from './static-table.ts'

/** Receives the fields of a header block in order. */
export interface FieldSink {
  /** `isSensitive`: the field must not enter any table (RFC 7541 7.1.3). */
  onField(entry: HeaderEntry, isSensitive: boolean): void
}

const staticEntries: readonly HeaderEntry[] = staticFields.map(([name, value]) =>
  headerEntry(name, value, kindOfName(name)),
)
const staticCount = staticEntries.length

/** Larger integers cannot be an index, a length or a table size that is allowed. */
const integerLimit = 2 ** 28

/** Scratch buffer for decoded strings; grows to the largest string so far. */
let scratch = Buffer.allocUnsafeSlow(4096)

/** Decodes the header blocks of one direction of one connection, which share a dynamic table. */
export class HpackDecoder {
  /** The dynamic table, newest entry last; entries before `#first` were evicted. */
  #entries: HeaderEntry[] = []
  #first = 0
  #size = 0
  /** The table size that we have announced, and the smaller or equal size that the peer uses. */
  readonly #sizeLimit: number
  #sizeInUse: number
  #bytes: Buffer = scratch
  #at = 0
  #end = 0

  /** `sizeLimit` is our SETTINGS_HEADER_TABLE_SIZE in octets. */
  constructor(sizeLimit = 4096) {
    this.#sizeLimit = sizeLimit
    this.#sizeInUse = sizeLimit
  }

  /** Size of the dynamic table in octets. */
  get tableSize(): number {
    return this.#size
  }

  /** Decodes a whole header block. Throws ConnectionError if it is malformed. */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): void {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    // Changes of the table's size are at the start of a block (RFC 7541 4.2).
    while (this.#at < end && ((bytes[this.#at] ?? 0) & 0xe0) === 0x20) {
      const size = this.#integer(0x1f)
      if (size > this.#sizeLimit) throw brokenBlock()
      this.#sizeInUse = size
      this.#evict(0)
    }
    while (this.#at < end) this.#field(sink)
  }

  #field(sink: FieldSink): void {
    const first = this.#bytes[this.#at] ?? 0
    if ((first & 0x80) !== 0) {
      sink.onField(this.#lookup(this.#integer(0x7f)), false)
      return
    }
    const isIndexed = (first & 0x40) !== 0
    if (!isIndexed && (first & 0x20) !== 0) throw brokenBlock()
    const entry = this.#literal(this.#integer(isIndexed ? 0x3f : 0x0f))
    if (isIndexed) this.#add(entry)
    sink.onField(entry, (first & 0x50) === 0x10)
  }

  #literal(nameIndex: number): HeaderEntry {
    const named = nameIndex === 0 ? undefined : this.#lookup(nameIndex)
    const name = named?.name ?? this.#string()
    return headerEntry(name, this.#string(), named?.nameKind ?? kindOfName(name))
  }

  #lookup(index: number): HeaderEntry {
    const at = this.#entries.length - (index - staticCount)
    const entry = index <= staticCount ? staticEntries[index - 1] : this.#entries[at]
    if (entry === undefined || at < this.#first) throw brokenBlock()
    return entry
  }

  #add(entry: HeaderEntry): void {
    this.#evict(entry.size)
    // An entry that is larger than the table only empties it (RFC 7541 4.4).
    if (entry.size > this.#sizeInUse) return
    this.#entries.push(entry)
    this.#size += entry.size
  }

  /** Evicts the oldest entries until there is room. */
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

  /** Reads an integer (RFC 7541 5.1); `mask` selects its prefix in the first byte. */
  #integer(mask: number): number {
    let value = (this.#bytes[this.#at++] ?? 0) & mask
    if (value < mask) return value
    for (let unit = 1; ; unit *= 128) {
      const byte = this.#at < this.#end ? (this.#bytes[this.#at] ?? 0) : -1
      this.#at++
      value += (byte & 0x7f) * unit
      if (byte < 0 || value > integerLimit || unit > integerLimit) throw brokenBlock()
      if (byte < 0x80) return value
    }
  }

  #string(): string {
    if (this.#at >= this.#end) throw brokenBlock()
    const isCoded = ((this.#bytes[this.#at] ?? 0) & 0x80) !== 0
    const length = this.#integer(0x7f)
    const start = this.#at
    if (length > this.#end - start) throw brokenBlock()
    this.#at = start + length
    if (!isCoded) return latin1Text(this.#bytes, start, this.#at)
    if (scratch.length < length * 2) scratch = Buffer.allocUnsafeSlow(length * 2)
    const decoded = decodeHuffman(this.#bytes, start, this.#at, scratch)
    if (decoded < 0) throw brokenBlock()
    return latin1Text(scratch, 0, decoded)
  }
}

/** The tables of both sides may differ after a malformed block, so the connection ends. */
function brokenBlock(): ConnectionError {
  return new ConnectionError(errorCodes.compression, 'broken header block')
}
