import type { Socket } from 'node:net'
import type { BodySink } from '../bytes/body-sink.ts'
import { latin1Text } from '../bytes/latin1.ts'
import type { SocketWriter, WriterOwner, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer, WriteBuffers } from '../bytes/write-buffers.ts'
import { copyLimit, socketHighWaterMark } from '../bytes/write-limits.ts'
import type { NodeHandles } from '../node-handles/node-handles.ts'
import { deadWriter, StreamWriter } from './stream-writer.ts'

/** Called for what happens at the socket of a connection. */
export interface TransportOwner {
  /** The bytes are the owner's only during the call, unless there are more than `copyLimit`. */
  onBytes(bytes: Buffer, start: number, end: number): void
  /** The peer sends nothing more. */
  onEnd(): void
  /** The socket is gone; called once, never after the owner destroyed it. */
  onClose(error: Error | undefined): void
  /** Everything that was written has reached the kernel. */
  onDrain(): void
  /** The peer takes nothing more, while what it has sent is still read. */
  onWriteLost?(): void
}

/** Bytes moved by all transports of one side. */
export interface ByteMeter {
  received: number
  sent: number
}

/** What transports of one engine share. */
export interface TransportParts extends NodeHandles {
  readonly writeBuffers: WriteBuffers
}

/**
 * A socket with gathered writes: small parts collect in one string until `flush`, so that a head
 * and a short body leave in one system call.
 */
export class Transport implements BodySink, WriterOwner {
  /** Undefined until one of several that are being connected is taken. */
  #socket: Socket | undefined
  /** The TCP socket; another one than `socket` if that is TLS. */
  readonly #raw: Socket | undefined
  readonly #meter: ByteMeter
  readonly #parts: TransportParts
  owner: TransportOwner
  paused = false
  /** Destroyed by us or closed by the system. */
  closed = false
  #text = ''
  /** What leaves before `#queue` and `#text`: bytes side by side. */
  #buffer: WriteBuffer | undefined
  /** Text and views that leave before `#text`, in order. */
  #queue: WrittenPart[] | undefined
  /** Made for the first write: until it is connected, a socket may change its handle. */
  #writer: SocketWriter | undefined
  #failure: Error | undefined
  /** The peer has sent the end of its stream. */
  #hasEnded = false
  /**
   * A failed write does not end the connection: what the peer has sent before it closed is read
   * first. A server that answers a request early and closes makes our writes fail (RFC 9112 9.6).
   */
  readsAfterWriteError = false
  /** What is to be given up with a transport that has no socket yet. */
  giveUp: (() => void) | undefined

  /** Without a socket nothing can be written before `adopt`. */
  constructor(
    parts: TransportParts,
    socket: Socket | undefined,
    owner: TransportOwner,
    meter: ByteMeter,
    raw = socket,
  ) {
    this.#parts = parts
    this.#raw = raw
    this.owner = owner
    this.#meter = meter
    if (socket !== undefined) this.adopt(socket)
  }

  /** No socket has been taken yet. */
  get isPending(): boolean {
    return this.#socket === undefined
  }

  /** Throws if there is none yet; owners ask only once they are connected. */
  get socket(): Socket {
    if (this.#socket === undefined) throw new Error('the transport is being connected')
    return this.#socket
  }

  /** Takes the socket; for a transport that began without. */
  adopt(socket: Socket): void {
    this.#socket = socket
    this.giveUp = undefined
    socket.on('error', (error) => {
      this.#failure = error
    })
    socket.on('end', () => {
      this.#hasEnded = true
      if (this.closed) return
      // The peer is gone, and everything that it has sent was read.
      if (this.#writer === deadWriter) socket.destroy(this.#failure)
      else this.owner.onEnd()
    })
    socket.on('close', () => {
      if (this.closed) return
      this.closed = true
      this.#bufferToText()
      this.owner.onClose(this.#failure)
    })
  }

  /** A transport that reads into shared memory if this Node supports it. */
  static overShared(
    parts: TransportParts,
    socket: Socket,
    owner: TransportOwner,
    meter: ByteMeter,
    raw = socket,
  ): Transport {
    const onRead = (length: number): boolean => transport.receivedShared(length)
    const taken = parts.sharedReads.takeOver(socket, socketHighWaterMark, onRead)
    if (taken === undefined) return Transport.overEvents(parts, socket, owner, meter, raw)
    const transport = new Transport(parts, taken, owner, meter, raw === socket ? taken : raw)
    return transport
  }

  /** A transport whose bytes come as buffers of their own. */
  static overEvents(
    parts: TransportParts,
    socket: Socket,
    owner: TransportOwner,
    meter: ByteMeter,
    raw = socket,
  ): Transport {
    const transport = new Transport(parts, socket, owner, meter, raw)
    transport.readEvents()
    return transport
  }

  /** Bytes come as buffers of their own. */
  readEvents(): void {
    this.#socket?.on('data', (chunk: Buffer) => {
      this.received(chunk, 0, chunk.length)
    })
  }

  /** So many bytes lie in the shared memory. Returns whether more may come now. */
  receivedShared(length: number): boolean {
    const { memory, start } = this.#parts.sharedReads
    // Large pieces are written as views, which must rest until the peer has read them.
    if (length <= copyLimit) this.received(memory, start, start + length)
    else this.received(Buffer.from(memory.subarray(start, start + length)), 0, length)
    return !this.paused
  }

  received(bytes: Buffer, start: number, end: number): void {
    this.#meter.received += end - start
    if (!this.closed) this.owner.onBytes(bytes, start, end)
  }

  /** Bytes wait for the peer: write no more until onDrain. */
  get needsDrain(): boolean {
    return this.#writer?.needsDrain === true
  }

  /** The socket that may still reference written views, until it drains or closes. */
  get bufferHolder(): Socket | undefined {
    return this.#writer?.holdsViews === false ? undefined : this.#socket
  }

  /** Bytes that were written and have not reached the kernel. */
  get backlog(): number {
    return this.#writer?.backlog ?? 0
  }

  get writeBuffer(): WriteBuffer | undefined {
    return this.#buffer
  }

  /** What is appended from now on to the next flush is little, and mostly bytes as they came. */
  startWriteBuffer(): void {
    if (this.#buffer !== undefined || this.#queue !== undefined || this.#text !== '') return
    if (this.closed || this.#writer?.takesBuffer !== true) return
    this.#buffer = this.#parts.writeBuffers.lease()
  }

  appendText(latin1: string): void {
    if (this.#buffer !== undefined) {
      if (this.#buffer.addText(latin1)) return
      this.#bufferToText()
    }
    this.#text += latin1
    if (this.#text.length > copyLimit) this.#write()
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    if (this.#buffer !== undefined) {
      if (this.#buffer.addBytes(bytes, start, end)) return
      this.#bufferToText()
    }
    if (end - start <= copyLimit) {
      this.appendText(latin1Text(bytes, start, end))
      return
    }
    if (this.closed) return
    this.#queue ??= []
    this.#queueText()
    this.#queue.push(bytes.subarray(start, end))
    this.#meter.sent += end - start
  }

  /** HTTP/1.1 frames bodies in what is appended. */
  endBody(): void {}

  /** Hands what was appended to the kernel; false when the peer is slow. */
  flush(): boolean {
    this.#write()
    return this.#writer?.needsDrain !== true
  }

  pause(): void {
    if (this.paused) return
    this.paused = true
    this.#socket?.pause()
  }

  resume(): void {
    if (!this.paused || this.closed) return
    this.paused = false
    this.#socket?.resume()
  }

  /** Sends what is left, then the end of the stream. */
  end(): void {
    if (this.closed) return
    this.flush()
    if (this.#writer === undefined) this.#socket?.end()
    else this.#writer.end()
  }

  /** Drops the connection; the owner is not called again. */
  destroy(): void {
    this.closed = true
    this.#bufferToText()
    if (this.#socket === undefined) this.giveUp?.()
    else this.#socket.destroy()
  }

  /** Drops the connection so that the peer sees an error, never a clean end. */
  reset(): void {
    if (this.#socket === undefined) {
      this.destroy()
      return
    }
    this.closed = true
    this.#bufferToText()
    const raw = this.#raw ?? this.#socket
    raw.resetAndDestroy()
    if (raw !== this.#socket) this.#socket.destroy()
  }

  /** It became more than fits: what is there goes on as text. */
  #bufferToText(): void {
    const buffer = this.#buffer
    if (buffer === undefined) return
    this.#buffer = undefined
    this.#text = buffer.text()
    buffer.release()
  }

  #sendBuffer(buffer: WriteBuffer): void {
    this.#buffer = undefined
    const writer = this.#openWriter()
    if (writer === undefined || buffer.length === 0) {
      buffer.release()
      return
    }
    this.#meter.sent += buffer.length
    writer.writeBuffer(buffer)
  }

  #queueText(): void {
    const text = this.#text
    if (text.length === 0) return
    this.#text = ''
    this.#meter.sent += text.length
    this.#queue?.push(text)
  }

  #write(): void {
    if (this.#buffer !== undefined) {
      this.#sendBuffer(this.#buffer)
      return
    }
    if (this.#queue !== undefined) {
      this.#writeParts()
      return
    }
    const text = this.#text
    if (text.length === 0) return
    this.#text = ''
    const writer = this.#openWriter()
    if (writer === undefined) return
    this.#meter.sent += text.length
    writer.writeText(text)
  }

  #writeParts(): void {
    this.#queueText()
    const parts = this.#queue ?? []
    this.#queue = undefined
    this.#openWriter()?.writeParts(parts)
  }

  /** `undefined` if there is nothing to write to. */
  #openWriter(): SocketWriter | undefined {
    if (this.closed) return undefined
    if (this.#writer === undefined && this.#socket !== undefined) {
      this.#writer = this.#makeWriter(this.#socket)
    }
    return this.#writer
  }

  #makeWriter(socket: Socket): SocketWriter {
    return this.#parts.handleWrites?.writerFor(socket, this) ?? new StreamWriter(socket, this)
  }

  onWritten(): void {
    if (!this.closed) this.owner.onDrain()
  }

  onWriteError(error: Error): void {
    const socket = this.#socket
    if (socket === undefined || socket.destroyed || this.#writer === deadWriter) return
    if (!this.readsAfterWriteError || this.#hasEnded) {
      socket.destroy(error)
      return
    }
    this.#failure ??= error
    const wasWaiting = this.#writer?.needsDrain === true
    this.#writer = deadWriter
    this.owner.onWriteLost?.()
    // Later: the write may be one that the owner is in the midst of.
    if (wasWaiting) process.nextTick(() => this.onWritten())
  }
}
