/**
 * Encoder of HPACK (RFC 7541). Heads are passed as HTTP/1.1 text. Each line of a head is the key of
 * its field in the table, so that a field that was sent before takes one lookup and one byte.
 */
import { encodeHuffman, huffmanLength } from './huffman.ts'
import { fieldOverhead, staticFields } from './static-table.ts'

/**
 * Fields that are added to the table: those whose values repeat, and whose values no attacker gains
 * from guessing (RFC 7541 7.1). All other fields are sent literally.
 */
const indexedFields = new Set([
  ':authority',
  'accept',
  'accept-encoding',
  'accept-language',
  'accept-ranges',
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'alt-svc',
  'cache-control',
  'content-encoding',
  'content-language',
  'content-security-policy',
  'content-type',
  'grpc-accept-encoding',
  'grpc-encoding',
  'grpc-status',
  'referrer-policy',
  'server',
  'strict-transport-security',
  'te',
  'trailer',
  'user-agent',
  'vary',
  'via',
  'x-content-type-options',
  'x-frame-options',
  'x-powered-by',
  'x-xss-protection',
])

/** Fields that neither we nor a later hop may add to a table (RFC 7541 7.1.3). */
const sensitiveFields = new Set(['authorization', 'cookie', 'proxy-authorization', 'set-cookie'])

/** Fields that only exist in HTTP/1.1 (RFC 9113 8.2.2). */
const connectionSpecific = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** Longer lines are not added to the table, because they would evict too many entries. */
const lineLimit = 512

const staticNames = new Map<string, number>()
const staticLines = new Map<string, string>()
for (const [at, [name, value]] of staticFields.entries()) {
  if (!staticNames.has(name)) staticNames.set(name, at + 1)
  if (value !== '') staticLines.set(`${name}: ${value}`, String.fromCharCode(0x80 | (at + 1)))
}
const staticCount = staticFields.length

/** Encodes an integer (RFC 7541 5.1) with a prefix of `bits` bits after `flags`. */
function integer(value: number, flags: number, bits: number): string {
  const mask = (1 << bits) - 1
  if (value < mask) return String.fromCharCode(flags | value)
  let out = String.fromCharCode(flags | mask)
  let left = value - mask
  while (left >= 128) {
    out += String.fromCharCode(0x80 | (left & 0x7f))
    left = Math.floor(left / 128)
  }
  return out + String.fromCharCode(left)
}

function plainString(text: string): string {
  return integer(text.length, 0, 7) + text
}

function shortestString(text: string): string {
  const coded = huffmanLength(text)
  return coded < text.length ? integer(coded, 0x80, 7) + encodeHuffman(text) : plainString(text)
}

/** Encodes the heads of one direction of one connection. */
export class HpackEncoder {
  /** For each line in the table: the number of entries that were added before it. */
  readonly #addedBefore = new Map<string, number>()
  #added = 0
  #size = 0
  #sizeLimit = 4096
  /** The smallest table size since the last block, and whether the size has changed (RFC 7541 4.2). */
  #smallest = 4096
  #isResized = false
  /** The last response whose block left the table unchanged: the same head gives the same block. */
  #lastHead = ''
  #lastBlock = ''

  /** Sets the table size to what the peer allows, but at most 4096 octets. */
  resize(admitted: number): void {
    const size = Math.min(admitted, 4096)
    if (size === this.#sizeLimit) return
    this.#sizeLimit = size
    this.#smallest = Math.min(this.#smallest, size)
    this.#isResized = true
    this.#lastHead = ''
    this.#evict(0)
  }

  /**
   * Encodes a response head in HTTP/1.1 text, whose first line gives the pseudo-header fields. Fields
   * that only exist in HTTP/1.1 are omitted.
   */
  response(head: string): string {
    if (head === this.#lastHead) return this.#lastBlock
    const added = this.#added
    const start = this.#begin()
    const end = head.indexOf('\r\n')
    const status = this.#line(`:status: ${head.slice(9, 12)}`)
    const block = start + status + this.#lines(head, end + 2)
    const isSteady = start === '' && added === this.#added
    this.#lastHead = isSteady ? head : ''
    this.#lastBlock = isSteady ? block : ''
    return block
  }

  /** Encodes a request head. `protocol` makes it an extended CONNECT (RFC 8441) instead of an upgrade. */
  request(
    head: string,
    scheme: string,
    protocol?: string,
    sensitiveNames?: ReadonlySet<string>,
  ): string {
    const end = head.indexOf('\r\n')
    const space = head.indexOf(' ')
    const method = protocol === undefined ? head.slice(0, space) : 'CONNECT'
    let block = this.#begin() + this.#line(`:method: ${method}`)
    if (protocol !== undefined) block += this.#line(`:protocol: ${protocol}`)
    block += this.#line(`:scheme: ${scheme}`) + this.#authority(head)
    block += this.#line(`:path: ${head.slice(space + 1, end - 9)}`)
    return block + this.#lines(head, end + 2, sensitiveNames, true)
  }

  trailers(lines: string): string {
    return this.#begin() + this.#lines(lines, 0)
  }

  #authority(head: string): string {
    const at = head.search(/\r\nhost:/i)
    if (at < 0) return ''
    const end = head.indexOf('\r\n', at + 2)
    return this.#line(`:authority: ${head.slice(at + 7, end).trim()}`)
  }

  #begin(): string {
    if (!this.#isResized) return ''
    this.#isResized = false
    const { 0: smallest, 1: limit } = [this.#smallest, this.#sizeLimit]
    this.#smallest = limit
    return (smallest < limit ? integer(smallest, 0x20, 5) : '') + integer(limit, 0x20, 5)
  }

  #lines(
    text: string,
    from: number,
    sensitiveNames?: ReadonlySet<string>,
    leavesHost = false,
  ): string {
    let out = ''
    for (let at = from; at < text.length; ) {
      let end = text.indexOf('\r\n', at)
      if (end < 0) end = text.length
      if (end > at) out += this.#line(text.slice(at, end), sensitiveNames, leavesHost)
      at = end + 2
    }
    return out
  }

  #line(line: string, sensitiveNames?: ReadonlySet<string>, leavesHost = false): string {
    const known = this.#addedBefore.get(line)
    if (known !== undefined) return integer(staticCount + this.#added - known, 0x80, 7)
    const fixed = staticLines.get(line)
    if (fixed !== undefined) return fixed
    const colon = line.indexOf(':', 1)
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (connectionSpecific.has(name) || (leavesHost && name === 'host')) return ''
    // TE must not have any other value (RFC 9113 8.2.2).
    if (name === 'te' && value !== 'trailers') return ''
    const nameIndex = staticNames.get(name) ?? 0
    const isSensitive = sensitiveFields.has(name) || sensitiveNames?.has(name) === true
    if (!isSensitive && indexedFields.has(name) && line.length <= lineLimit) {
      return this.#index(line, name, value, nameIndex)
    }
    const start = integer(nameIndex, isSensitive ? 0x10 : 0, 4)
    return start + (nameIndex === 0 ? plainString(name) : '') + plainString(value)
  }

  /** Encodes a literal field and adds it to the table. */
  #index(line: string, name: string, value: string, nameIndex: number): string {
    const size = name.length + value.length + fieldOverhead
    const start = integer(nameIndex, 0x40, 6) + (nameIndex === 0 ? shortestString(name) : '')
    this.#evict(size)
    if (size <= this.#sizeLimit) {
      this.#addedBefore.set(line, this.#added)
      this.#size += size
      // The indices of all entries have changed.
      this.#lastHead = ''
    }
    if (size <= this.#sizeLimit) this.#added++
    return start + shortestString(value)
  }

  /** Evicts the oldest entries until there is room; a Map keeps the order of insertion. */
  #evict(room: number): void {
    if (this.#size + room <= this.#sizeLimit) return
    for (const line of this.#addedBefore.keys()) {
      if (this.#size + room <= this.#sizeLimit) return
      this.#addedBefore.delete(line)
      const colon = line.indexOf(':', 1)
      const value = line.slice(colon + 1).trim()
      this.#size -= colon + value.length + fieldOverhead
    }
  }
}
