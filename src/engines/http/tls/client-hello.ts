/**
 * The first message of a TLS connection, read before TLS begins: the certificates of a listener can
 * only be chosen all together when its name is known beforehand (RFC 8446 4.1.2, RFC 6066 3).
 *
 * ```
 *   record      22 | version 2 | length 2 | fragment ...          one hello may span records
 *   handshake    1 | length 3  | version 2 | random 32 | session id <1> | suites <2>
 *                  | compression <1> | extensions <2>
 *   extension   type 2 | <2>         server_name: list <2> of  0 | host name <2>
 * ```
 */
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import { ticketNameBytes } from './session-tickets.ts'

interface ClientHello {
  /**
   * As the client wrote it, except for a trailing dot, which RFC 6066 3 forbids but some clients send.
   * Undefined if the client names no server.
   */
  readonly serverName: string | undefined
  /** First bytes of the client's session tickets as latin1: the names of their keys (RFC 5077 4). */
  readonly tickets: readonly string[]
}

const handshakeRecord = 22
const clientHelloMessage = 1
const recordHeader = 5
const messageHeader = 4
const largestFragment = 16_384
/** Maximum size of a hello, far more than clients send, including post-quantum key shares. */
const maxHelloBytes = 16_384
/** If so many bytes contain no whole hello, they are not TLS. */
const maxBytes = 2 * maxHelloBytes
const serverNameExtension = 0
const hostName = 0
/** Ticket extensions of TLS 1.2 (RFC 5077) and of TLS 1.3 (RFC 8446 4.2.11). */
const ticketExtension = 35
const sharedKeysExtension = 41
const ticketAgeBytes = 4

type HelloResult = ClientHello | 'incomplete' | 'malformed'

/** Reads a hello that arrives in pieces of any size. Bytes that are not TLS are also `malformed`. */
export class ClientHelloReader {
  /** The part of the current record's header that has arrived. */
  readonly #header = new GrowingBytes()
  /** The content of all records so far. */
  readonly #message = new GrowingBytes()
  #fragmentLeft = 0
  #received = 0

  push(bytes: Buffer): HelloResult {
    this.#received += bytes.length
    for (let at = 0; at < bytes.length; ) {
      if (this.#fragmentLeft === 0) {
        this.#header.addByte(bytes[at++] ?? 0)
        if (!this.#isHeaderSound()) return 'malformed'
        continue
      }
      const end = Math.min(bytes.length, at + this.#fragmentLeft)
      this.#message.add(bytes, at, end)
      this.#fragmentLeft -= end - at
      at = end
      const result = this.#read()
      if (result !== 'incomplete') return result
    }
    return this.#received > maxBytes ? 'malformed' : 'incomplete'
  }

  /** Begins the fragment once the header is complete. Returns false if the header is malformed. */
  #isHeaderSound(): boolean {
    const header = this.#header.content
    if (header[0] !== handshakeRecord) return false
    if (header.length < recordHeader) return true
    this.#header.clear()
    this.#fragmentLeft = header.readUInt16BE(3)
    return header[1] === 3 && this.#fragmentLeft > 0 && this.#fragmentLeft <= largestFragment
  }

  #read(): HelloResult {
    const message = this.#message.content
    if (message.length < messageHeader) return 'incomplete'
    const size = message.readUIntBE(1, 3)
    if (message[0] !== clientHelloMessage || size > maxHelloBytes) return 'malformed'
    const end = messageHeader + size
    if (message.length < end) return 'incomplete'
    try {
      return helloOf(message.subarray(messageHeader, end))
    } catch {
      return 'malformed'
    }
  }
}

/**
 * Reads a whole hello. Throws if a length exceeds the message, or if the hello has two server names, because
 * the gateway and the server could use different ones (RFC 8446 4.2, RFC 6066 3).
 */
function helloOf(message: Buffer): ClientHello {
  const hello = new Vectors(message.subarray(2 + 32))
  hello.take(1)
  hello.take(2)
  hello.take(1)
  let serverName: string | undefined
  const tickets: string[] = []
  const extensions = new Vectors(hello.isEmpty ? noBytes : hello.take(2))
  for (let hasName = false; !extensions.isEmpty; ) {
    const type = extensions.number(2)
    const content = extensions.take(2)
    if (type === serverNameExtension) {
      if (hasName) throw new RangeError('two server_name extensions')
      hasName = true
      serverName = serverNameOf(content)
    } else if (type === ticketExtension) tickets.push(nameOf(content))
    else if (type === sharedKeysExtension) readIdentities(content, tickets)
  }
  return { serverName, tickets }
}

function serverNameOf(content: Buffer): string | undefined {
  const extension = new Vectors(content)
  const names = new Vectors(extension.take(2))
  if (!extension.isEmpty) throw new RangeError('bytes after the list of server names')
  let found: string | undefined
  while (!names.isEmpty) {
    const isHostName = names.number(1) === hostName
    const name = names.take(2)
    if (!isHostName) continue
    if (found !== undefined) throw new RangeError('two host names')
    found = withoutRootDot(name.toString('latin1'))
  }
  return found
}

function readIdentities(content: Buffer, tickets: string[]): void {
  const identities = new Vectors(new Vectors(content).take(2))
  while (!identities.isEmpty) {
    tickets.push(nameOf(identities.take(2)))
    identities.number(ticketAgeBytes)
  }
}

const nameOf = (ticket: Buffer): string => ticket.toString('latin1', 0, ticketNameBytes)

const noBytes = Buffer.alloc(0)

/** Reads numbers, and byte strings that follow their length. */
class Vectors {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isEmpty(): boolean {
    return this.#at === this.#bytes.length
  }

  number(size: number): number {
    const value = this.#bytes.readUIntBE(this.#at, size)
    this.#at += size
    return value
  }

  take(lengthSize: number): Buffer {
    const end = this.number(lengthSize) + this.#at
    if (end > this.#bytes.length) throw new RangeError('a length exceeds its message')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}
