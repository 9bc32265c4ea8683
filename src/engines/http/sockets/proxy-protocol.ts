/**
 * The header in which a load balancer names the client of a connection (PROXY protocol, versions 1
 * and 2, as HAProxy specifies them).
 *
 * ```
 *   1   "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"      at most 107 bytes; or UNKNOWN
 *   2   signature 12 | version, command | family | length 2 | addresses, ports, extensions
 * ```
 */
import { isIP } from 'node:net'
import type { Peer, ProxyHeader } from '../../../ground/exchange/peer.ts'
import { shortestAddress } from './canonical-address.ts'
import { crc32c } from './crc32c.ts'

interface ReadHeader extends ProxyHeader {
  /** Size of the header in bytes; the bytes after it belong to the connection. */
  readonly length: number
  /** The client; undefined for a LOCAL header, or an address family without addresses. */
  readonly source: Peer | undefined
}

/** `absent`: the connection does not begin with a header. */
type Reading = ReadHeader | 'incomplete' | 'malformed' | 'absent'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const fixedLength = 16
const longestLine = 107
/** Maximum size of the rest of a binary header: at most 36 bytes of addresses, and extensions. */
const maxBodyBytes = 4_096

const inet = 1
const inet6 = 2
/** Size of the addresses and ports, by family: unspecified, IPv4, IPv6 and Unix. */
const addressBytes: readonly number[] = [0, 12, 36, 216]

/** Type of the extension with the checksum (PP2_TYPE_CRC32C). */
const checksumType = 3

const noTlvs: ProxyHeader['tlvs'] = new Map()

/** Reads the header from the bytes that have arrived so far. */
export function readProxyHeader(bytes: Buffer): Reading {
  const known = Math.min(bytes.length, signature.length)
  if (bytes.subarray(0, known).equals(signature.subarray(0, known))) {
    return bytes.length < fixedLength ? 'incomplete' : readBinary(bytes)
  }
  return readLine(bytes)
}

function readBinary(bytes: Buffer): Reading {
  const command = bytes.readUInt8(12)
  const family = bytes.readUInt8(13) >> 4
  const bodyLength = bytes.readUInt16BE(14)
  if (command >> 4 !== 2 || (command & 15) > 1 || bodyLength > maxBodyBytes) return 'malformed'
  const length = fixedLength + bodyLength
  if (bytes.length < length) return 'incomplete'
  if ((command & 15) === 0) return { length, version: 2, source: undefined, tlvs: noTlvs }
  const addresses = addressBytes[family]
  // The extensions of other families cannot be found, because the size of their addresses is not known.
  if (addresses === undefined) return { length, version: 2, source: undefined, tlvs: noTlvs }
  const start = fixedLength + addresses
  const tlvs = start > length ? undefined : readTlvs(bytes.subarray(start, length))
  if (tlvs === undefined) return 'malformed'
  if (!hasSoundChecksum(bytes.subarray(0, length), start)) return 'malformed'
  if (family !== inet && family !== inet6) return { length, version: 2, source: undefined, tlvs }
  const size = family === inet ? 4 : 16
  const address = addressText(bytes.subarray(fixedLength, fixedLength + size))
  const port = bytes.readUInt16BE(fixedLength + 2 * size)
  return { length, version: 2, source: { address, port }, tlvs }
}

/** Reads the extensions: type 1 | length 2 | value. */
function readTlvs(bytes: Buffer): ReadonlyMap<number, Uint8Array> | undefined {
  const found = new Map<number, Uint8Array>()
  for (let at = 0; at < bytes.length; ) {
    if (at + 3 > bytes.length) return undefined
    const end = at + 3 + bytes.readUInt16BE(at + 1)
    if (end > bytes.length) return undefined
    const type = bytes.readUInt8(at)
    // A copy, because the bytes belong to a buffer that grows.
    if (!found.has(type)) found.set(type, Uint8Array.from(bytes.subarray(at + 3, end)))
    at = end
  }
  return found
}

/** Verifies the checksum of a header, if it has one. It covers the header, with zeros in place of the checksum itself. */
function hasSoundChecksum(header: Buffer, start: number): boolean {
  for (let at = start; at < header.length; ) {
    const size = header.readUInt16BE(at + 1)
    const value = at + 3
    at = value + size
    if (header[value - 3] !== checksumType) continue
    if (size !== 4) return false
    const zeroed = Buffer.from(header).fill(0, value, at)
    return crc32c(zeroed) === header.readUInt32BE(value)
  }
  return true
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16))
  return shortestAddress(groups.join(':'))
}

const linePattern = /^PROXY (?:UNKNOWN(?: .*)?|(TCP[46]) (\S+) (\S+) ([0-9]{1,5}) ([0-9]{1,5}))$/

function readLine(bytes: Buffer): Reading {
  const end = bytes.subarray(0, longestLine).indexOf('\r\n')
  if (!isBeginning(bytes)) return 'absent'
  if (end < 0) return bytes.length < longestLine ? 'incomplete' : 'malformed'
  const parts = linePattern.exec(bytes.toString('latin1', 0, end))
  if (parts === null) return 'malformed'
  const length = end + 2
  const [, family, address = '', , digits] = parts
  if (family === undefined) return { length, version: 1, source: undefined, tlvs: noTlvs }
  const port = Number(digits)
  if (isIP(address) !== (family === 'TCP4' ? 4 : 6) || port > 65_535) return 'malformed'
  return { length, version: 1, source: { address: shortestAddress(address), port }, tlvs: noTlvs }
}

function isBeginning(bytes: Buffer): boolean {
  const word = 'PROXY '
  const text = bytes.toString('latin1', 0, word.length)
  return word.startsWith(text)
}
