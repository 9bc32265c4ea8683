import type { Socket } from 'node:net'
import type { BodySink } from './body-sink.ts'
import { latin1Text } from './latin1.ts'
import type { SharedReads } from './shared-reads.ts'

/** What a connection hears from its socket. */
export interface TransportOwner {
  /** The bytes are the owner's only during the call, unless there are more than `copyLimit`. */
  onBytes(bytes: Buffer, start: number, end: number): void
  /** The peer sends nothing more. */
  onEnd(): void
  /** The socket is gone; called once, never after the owner destroyed it. */
  onClose(error: Error | undefined): void
  /** Everything that was written has reached the kernel. */
  onDrain(): void
}

/** Bytes moved by all transports of one side. */
export interface ByteMeter {
  received: number
  sent: number
}

/**
 * Writes up to this size are made as one Latin-1 string (a copy, so the source may be reused);
 * larger ones are views of the source, which then must rest until the socket has drained.
 */
export const copyLimit = 16 * 1024

/** Also the sockets' own mark, so that a pending view always ends in a drain event. */
export const socketHighWaterMark = copyLimit

/**
 * A socket with gathered writes: small parts collect in one string until `flush`, so that a head
 * and a short body leave in one system call.
 */
export class Transport implements BodySink {
  readonly socket: Socket
  /** The TCP socket; another one than `socket` where that is TLS. */
  readonly #raw: Socket
  readonly #meter: ByteMeter
  owner: TransportOwner
  paused = false
  /** Destroyed by us or closed by the system. */
  closed = false
  #text = ''
  #corked = false
  /** More was written than fits since the last drain: only then the socket has to be asked. */
  #isFull = false
  #failure: Error | undefined

  constructor(socket: Socket, owner: TransportOwner, meter: ByteMeter, raw = socket) {
    this.socket = socket
    this.#raw = raw
    this.owner = owner
    this.#meter = meter
    socket.on('error', (error) => {
      this.#failure = error
    })
    socket.on('end', () => {
      if (!this.closed) this.owner.onEnd()
    })
    socket.on('drain', () => {
      this.#isFull = false
      if (!this.closed) this.owner.onDrain()
    })
    socket.on('close', () => {
      if (this.closed) return
      this.closed = true
      this.owner.onClose(this.#failure)
    })
  }

  /** A transport that reads into shared memory where this Node can do so. */
  static overShared(
    socket: Socket,
    owner: TransportOwner,
    meter: ByteMeter,
    reads: SharedReads,
  ): Transport {
    const { memory, start } = reads
    const taken = reads.takeOver(socket, socketHighWaterMark, (length) => {
      // Large pieces are written as views, which must rest until the peer has read them.
      if (length <= copyLimit) transport.received(memory, start, start + length)
      else transport.received(Buffer.from(memory.subarray(start, start + length)), 0, length)
      return !transport.paused
    })
    if (taken === undefined) return Transport.overEvents(socket, owner, meter)
    const transport = new Transport(taken, owner, meter)
    return transport
  }

  /** A transport whose bytes come as buffers of their own. */
  static overEvents(
    socket: Socket,
    owner: TransportOwner,
    meter: ByteMeter,
    raw = socket,
  ): Transport {
    const transport = new Transport(socket, owner, meter, raw)
    socket.on('data', (chunk: Buffer) => {
      transport.received(chunk, 0, chunk.length)
    })
    return transport
  }

  received(bytes: Buffer, start: number, end: number): void {
    this.#meter.received += end - start
    if (!this.closed) this.owner.onBytes(bytes, start, end)
  }

  /** Bytes wait for the peer: write no more until onDrain. */
  get needsDrain(): boolean {
    return this.#isFull && this.socket.writableNeedDrain
  }

  appendText(latin1: string): void {
    this.#text += latin1
    if (this.#text.length > copyLimit) this.#write()
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    if (end - start <= copyLimit) {
      this.appendText(latin1Text(bytes, start, end))
      return
    }
    if (this.closed) return
    if (!this.#corked) {
      this.#corked = true
      this.socket.cork()
    }
    this.#write()
    this.#meter.sent += end - start
    if (!this.socket.write(bytes.subarray(start, end))) this.#isFull = true
  }

  /** HTTP/1.1 frames bodies in what is appended. */
  endBody(): void {}

  /** Hands what was appended to the kernel; false when the peer is slow. */
  flush(): boolean {
    this.#write()
    if (this.#corked) {
      this.#corked = false
      this.socket.uncork()
    }
    return !this.needsDrain
  }

  pause(): void {
    if (this.paused) return
    this.paused = true
    this.socket.pause()
  }

  resume(): void {
    if (!this.paused || this.closed) return
    this.paused = false
    this.socket.resume()
  }

  /** Sends what is left, then the end of the stream. */
  end(): void {
    if (this.closed) return
    this.flush()
    this.socket.end()
  }

  /** Drops the connection; the owner hears nothing more. */
  destroy(): void {
    this.closed = true
    this.socket.destroy()
  }

  /** Drops the connection so that the peer sees an error, never a clean end. */
  reset(): void {
    this.closed = true
    this.#raw.resetAndDestroy()
    if (this.#raw !== this.socket) this.socket.destroy()
  }

  #write(): void {
    const text = this.#text
    if (text.length === 0) return
    this.#text = ''
    if (this.closed || !this.socket.writable) return
    this.#meter.sent += text.length
    if (!this.socket.write(text, 'latin1')) this.#isFull = true
  }
}
