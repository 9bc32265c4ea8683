/**
 * A strict reader of HTTP/1.1 (RFC 9112), written apart from the engine: what the gateway sends must parse here,
 * without any leniency.
 */
import { appended } from './bytes.ts'

export type Field = readonly [name: string, value: string]

export class Message {
  readonly startLine: string
  readonly fields: readonly Field[]
  trailers: readonly Field[] = []
  /** Whether the whole message has arrived. */
  isComplete = false
  size = 0
  #pieces: Buffer[] = []

  constructor(startLine: string, fields: readonly Field[]) {
    this.startLine = startLine
    this.fields = fields
  }

  add(bytes: Buffer): void {
    this.#pieces.push(bytes)
    this.size += bytes.length
  }

  get body(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0] as Buffer
  }
}

/** How the body of a message ends. */
type BodyEnd = 'none' | 'length' | 'chunked' | 'close' | 'tunnel'

export class FramingError extends Error {}

export interface MessageOwner {
  /** Called with each head. */
  onHead(message: Message): void
  /** Called when more of the body has arrived. */
  onBody?(message: Message): void
  onComplete(message: Message): void
}

const crlf = '\r\n'
const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const requestLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [\x21-\x7e]+ HTTP\/1\.[01]$/
const statusLine = /^HTTP\/1\.1 [1-5][0-9]{2} [\x20-\x7e\x80-\xff]*$/

export const valuesOf = ({ fields }: Pick<Message, 'fields'>, name: string): string[] =>
  fields.flatMap(([other, value]) =>
    other.length === name.length && other.toLowerCase() === name ? [value] : [],
  )

export const statusOf = ({ startLine }: Pick<Message, 'startLine'>): number =>
  Number(startLine.split(' ')[1])

export class MessageReader {
  readonly #kind: 'request' | 'response'
  readonly #owner: MessageOwner
  /** Says whether the next response is one to HEAD or CONNECT. */
  readonly #methodOfNext: () => string
  #rest = Buffer.alloc(0)
  #message: Message | undefined
  #end: BodyEnd = 'none'
  /** Bytes of the body or of the chunk that are still to come. */
  #left = 0
  #chunkState: 'size' | 'data' | 'trailers' = 'size'

  constructor(kind: 'request' | 'response', owner: MessageOwner, methodOfNext: () => string) {
    this.#kind = kind
    this.#owner = owner
    this.#methodOfNext = methodOfNext
  }

  /** The message of which only a part has arrived. */
  get unfinished(): Message | undefined {
    return this.#message
  }

  /** Whether a part of a message has arrived, which may be a part of its head. */
  get hasPart(): boolean {
    return this.#message !== undefined || this.#rest.length > 0
  }

  /** @throws FramingError */
  push(bytes: Uint8Array): void {
    this.#rest = appended(this.#rest, bytes)
    while (this.#step());
  }

  /** Called when the connection has ended in order. @throws FramingError if it ended inside a message */
  finish(): void {
    const message = this.#message
    if (message !== undefined && this.#end === 'close') this.#complete(message, [])
    else if (message !== undefined) throw new FramingError('the connection ended inside a body')
    else if (this.#rest.length > 0) throw new FramingError('the connection ended inside a head')
  }

  /** Returns whether there may be more to do. */
  #step(): boolean {
    const message = this.#message
    if (message === undefined) return this.#readHead()
    switch (this.#end) {
      case 'none':
        this.#complete(message, [])
        return true
      case 'length':
        this.#takeData(message)
        if (this.#left > 0) return false
        this.#complete(message, [])
        return true
      case 'chunked':
        return this.#readChunk(message)
      case 'close':
      case 'tunnel':
        this.#left = this.#rest.length
        this.#takeData(message)
        return false
    }
  }

  #readHead(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end < 0) {
      if (this.#rest.length > 100_000) throw new FramingError('a head has no end')
      return false
    }
    const [startLine = '', ...lines] = this.#rest.toString('latin1', 0, end).split(crlf)
    this.#rest = this.#rest.subarray(end + 4)
    const pattern = this.#kind === 'request' ? requestLine : statusLine
    if (!pattern.test(startLine)) throw new FramingError(`start line ${JSON.stringify(startLine)}`)
    const message = new Message(startLine, lines.map(readField))
    this.#message = message
    this.#end = this.#endOf(message)
    this.#owner.onHead(message)
    return true
  }

  #endOf(message: Message): BodyEnd {
    const lengths = valuesOf(message, 'content-length')
    const codings = valuesOf(message, 'transfer-encoding')
    if (lengths.length > 1 || codings.length > 1) throw new FramingError('framing fields repeat')
    const [length] = lengths
    const [coding] = codings
    if (length !== undefined && coding !== undefined) throw new FramingError('two framings')
    if (length !== undefined && !/^\d+$/.test(length)) throw new FramingError(`length ${length}`)
    if (coding !== undefined && coding !== 'chunked') throw new FramingError(`coding ${coding}`)
    if (this.#kind === 'response') {
      const status = statusOf(message)
      if (status === 101) return 'tunnel'
      const isBare = status < 200 || status === 204
      if (isBare && (length ?? coding) !== undefined) throw new FramingError('framing of a 204')
      if (isBare || status === 304 || this.#methodOfNext() === 'HEAD') return 'none'
    }
    this.#left = Number(length ?? 0)
    this.#chunkState = 'size'
    if (coding !== undefined) return 'chunked'
    if (length !== undefined) return 'length'
    return this.#kind === 'response' ? 'close' : 'none'
  }

  #readChunk(message: Message): boolean {
    if (this.#chunkState === 'data') {
      this.#takeData(message)
      if (this.#left > 0 || this.#rest.length < 2) return false
      if (this.#rest.toString('latin1', 0, 2) !== crlf) throw new FramingError('a chunk has no end')
      this.#rest = this.#rest.subarray(2)
      this.#chunkState = 'size'
      return true
    }
    const end = this.#rest.indexOf(crlf)
    if (end < 0) return false
    const line = this.#rest.toString('latin1', 0, end)
    if (this.#chunkState === 'size') {
      if (!/^[0-9A-Fa-f]{1,8}$/.test(line)) throw new FramingError(`chunk size ${line}`)
      this.#rest = this.#rest.subarray(end + 2)
      this.#left = Number.parseInt(line, 16)
      this.#chunkState = this.#left === 0 ? 'trailers' : 'data'
      return true
    }
    if (line === '') {
      this.#rest = this.#rest.subarray(2)
      this.#complete(message, [])
      return true
    }
    const last = this.#rest.indexOf('\r\n\r\n')
    if (last < 0) return false
    const lines = this.#rest.toString('latin1', 0, last).split(crlf)
    this.#rest = this.#rest.subarray(last + 4)
    this.#complete(message, lines.map(readField))
    return true
  }

  #takeData(message: Message): void {
    const size = Math.min(this.#left, this.#rest.length)
    if (size === 0) return
    message.add(this.#rest.subarray(0, size))
    this.#rest = this.#rest.subarray(size)
    this.#left -= size
    this.#owner.onBody?.(message)
  }

  #complete(message: Message, trailers: readonly Field[]): void {
    message.trailers = trailers
    message.isComplete = true
    this.#message = undefined
    this.#owner.onComplete(message)
  }
}

function readField(line: string): Field {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon))
  const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not occur
  if (!tokenPattern.test(name) || /[\x00-\x08\x0a-\x1f\x7f]/.test(value)) {
    throw new FramingError(`field ${JSON.stringify(line)}`)
  }
  return [name, value]
}
