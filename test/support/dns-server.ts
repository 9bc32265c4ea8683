/** A DNS server for tests (RFC 1035): answers A and AAAA queries with the addresses of the test. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, isIPv6 } from 'node:net'

const typeA = 1
const typeAaaa = 28

interface Question {
  readonly name: string
  readonly type: number
  /** Where the question ends in the message. */
  readonly end: number
}

/** Codes of RFC 1035 4.1.1. */
const noError = 0
const serverFailure = 2
const nameError = 3

export class DnsServer {
  readonly #socket = createSocket('udp4')
  readonly #held = new Map<number, (() => void)[]>()
  /** Name -> addresses of both families. */
  readonly hosts = new Map<string, readonly string[]>()
  /** Names that were asked for, once for each question. */
  readonly asked: string[] = []
  /** Seconds that answers hold. */
  ttl = 1
  /** Answers SERVFAIL to everything. */
  isBroken = false

  get address(): string {
    return `127.0.0.1:${(this.#socket.address() as AddressInfo).port}`
  }

  async start(): Promise<this> {
    this.#socket.on('message', (message, from) => {
      const send = () => this.#socket.send(this.#answer(message), from.port, from.address)
      const held = this.#held.get(readQuestion(message).type)
      if (held === undefined) send()
      else held.push(send)
    })
    this.#socket.bind(0, '127.0.0.1')
    await once(this.#socket, 'listening')
    return this
  }

  /** Holds answers about records of a type back until the returned function is called. */
  withhold(type: 'A' | 'AAAA'): () => void {
    const code = type === 'A' ? typeA : typeAaaa
    const held: (() => void)[] = []
    this.#held.set(code, held)
    return () => {
      this.#held.delete(code)
      for (const send of held) send()
    }
  }

  close(): void {
    this.#socket.close()
  }

  #answer(message: Buffer): Buffer {
    const { name, type, end } = readQuestion(message)
    this.asked.push(name)
    const known = this.hosts.get(name)
    const wanted = (known ?? []).filter((one) => (isIPv6(one) ? typeAaaa : typeA) === type)
    const records = this.isBroken ? [] : wanted.map((one) => record(type, this.ttl, one))
    const code = this.isBroken ? serverFailure : known === undefined ? nameError : noError
    const head = Buffer.from(message.subarray(0, 12))
    // A response, recursion asked for and available.
    head.writeUInt16BE(0x8180 | code, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    return Buffer.concat([head, message.subarray(12, end), ...records])
  }
}

function readQuestion(message: Buffer): Question {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 }
}

/** A record of the name that was asked for (a pointer to byte 12), in class IN. */
function record(type: number, ttl: number, address: string): Buffer {
  const data = Buffer.from(type === typeA ? fourBytes(address) : sixteenBytes(address))
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(ttl, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

const fourBytes = (address: string) => address.split('.').map(Number)

function sixteenBytes(address: string): number[] {
  const [left = '', right] = address.split('::')
  const words = (text: string) => (text === '' ? [] : text.split(':'))
  const [front, back] = [words(left), words(right ?? '')]
  const middle = new Array(right === undefined ? 0 : 8 - front.length - back.length).fill('0')
  return [...front, ...middle, ...back].flatMap((word) => {
    const value = Number.parseInt(word, 16)
    return [value >> 8, value & 255]
  })
}
