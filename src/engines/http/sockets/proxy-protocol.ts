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
import type { Peer } from '../../../ground/exchange/exchange.ts'
import { shortestAddress } from './canonical-address.ts'

interface ProxyHeader {
  /** Size of the header in bytes; the bytes after it belong to the connection. */
  readonly length: number
  /** The client; undefined for a LOCAL header, or an address family without addresses. */
  readonly source: Peer | undefined
}

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const fixedLength = 16
const longestLine = 107
/** Maximum size of the rest of a binary header: at most 36 bytes of addresses, and extensions. */
const maxBodyBytes = 4_096

const inet = 1
const inet6 = 2

/** Reads the header from the bytes that have arrived so far. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  const known = Math.min(bytes.length, signature.length)
  if (bytes.subarray(0, known).equals(signature.subarray(0, known))) {
    return bytes.length < fixedLength ? 'incomplete' : readBinary(bytes)
  }
  return readLine(bytes)
}

function readBinary(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  const command = bytes.readUInt8(12)
  const family = bytes.readUInt8(13) >> 4
  const bodyLength = bytes.readUInt16BE(14)
  if (command >> 4 !== 2 || (command & 15) > 1 || bodyLength > maxBodyBytes) return 'malformed'
  const length = fixedLength + bodyLength
  if (bytes.length < length) return 'incomplete'
  if ((command & 15) === 0 || (family !== inet && family !== inet6)) {
    return { length, source: undefined }
  }
  const size = family === inet ? 4 : 16
  if (bodyLength < 2 * size + 4) return 'malformed'
  const address = bytes.subarray(fixedLength, fixedLength + size)
  const port = bytes.readUInt16BE(fixedLength + 2 * size)
  return { length, source: { address: addressText(address), port } }
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16))
  return shortestAddress(groups.join(':'))
}

const linePattern = /^PROXY (?:UNKNOWN(?: .*)?|(TCP[46]) (\S+) (\S+) ([0-9]{1,5}) ([0-9]{1,5}))$/

function readLine(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  const end = bytes.subarray(0, longestLine).indexOf('\r\n')
  if (end < 0) return isBeginning(bytes) ? 'incomplete' : 'malformed'
  const parts = linePattern.exec(bytes.toString('latin1', 0, end))
  if (parts === null) return 'malformed'
  const length = end + 2
  const [, family, address = '', , digits] = parts
  if (family === undefined) return { length, source: undefined }
  const port = Number(digits)
  if (isIP(address) !== (family === 'TCP4' ? 4 : 6) || port > 65_535) return 'malformed'
  return { length, source: { address: shortestAddress(address), port } }
}

function isBeginning(bytes: Buffer): boolean {
  const word = 'PROXY '
  const text = bytes.toString('latin1', 0, word.length)
  return bytes.length < longestLine && word.startsWith(text.slice(0, word.length))
}
