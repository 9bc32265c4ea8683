import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { latin1Text } from '../../../ground/base/latin1.ts'
import type { BodySink } from '../bytes/body-sink.ts'
import type { SocketWriter, WriterOwner, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer, WriteBuffers } from '../bytes/write-buffers.ts'
import { copyLimit } from '../bytes/write-limits.ts'
import type { NodeHandles } from '../node-handles/node-handles.ts'
import { deadWriter, StreamWriter } from './stream-writer.ts'

/** Handles the events of a transport. */
export interface TransportOwner {
  /** Called for received bytes, valid only during the call unless there are more than `copyLimit`. */
  onBytes(bytes: Buffer, start: number, end: number): void
  /** Called when the peer sends nothing more. */
  onEnd(): void
  /** Called once when the socket is gone, but never after the owner has destroyed it. */
  onClose(error: Error | undefined): void
  /** Called when everything that was written has reached the kernel. */
  onDrain(): void
  /** Called when a write has failed; bytes that the peer has sent are still read. */
  onWriteLost?(): void
}

/** Bytes that all transports of one side have received and sent. */
export interface ByteMeter {
  received: number
  sent: number
}

/** The objects that the transports of one engine share. */
export interface TransportParts extends NodeHandles {
  readonly writeBuffers: WriteBuffers
}

/**
 * A socket whose writes are collected: small parts are joined to one string until `flush`, so that a
 * head and a short body are sent with one system call.
 */
export class Transport implements BodySink, WriterOwner {
  /** Undefined until a connection has been chosen from several attempts. */
  #socket: Socket | undefined
  /** The TCP socket under `socket` if that is TLS. */
  readonly #raw: Socket | undefined
  readonly #meter: ByteMeter
  readonly #parts: TransportParts
  owner: TransportOwner
  paused = false
  /** Whether the connection was destroyed by us or closed by the system. */
  closed = false
  /** Number of writes to the socket so far. */
  writes = 0
  #text = ''
  /** Bytes that are sent before `#queue` and `#text`. */
  #buffer: WriteBuffer | undefined
  /** Text and views that are sent before `#text`, in this order. */
  #queue: WrittenPart[] | undefined
  /** Created for the first write, because a socket may change its handle until it is connected. */
  #writer: SocketWriter | undefined
  #failure: Error | undefined
  /** Whether the peer has ended its stream. */
  #hasEnded = false
  /**
   * Whether to read on after a failed write, because the peer may have sent something before it
   * closed. A server that responds to a request early and closes makes our writes fail (RFC 9112 9.6).
   */
  readsAfterWriteError = false
  /** Whether to write with the stream of the socket, because TLS over TLS has no handle to write to. */
  writesStream = false
  /** Cancels connecting; set until a socket is adopted. */
  cancelOpening: (() => void) | undefined

  /** Without a socket, nothing can be written before `adopt`. */
  constructor(
    parts: TransportParts,
    socket: Socket | undefined,
    owner: TransportOwner,
    meter: ByteMeter,
    raw?: Socket,
  ) {
    this.#parts = parts
    this.#raw = raw
    this.owner = owner
    this.#meter = meter
    if (socket !== undefined) this.adopt(socket)
  }

  /** Whether no socket was adopted yet. */
  get isPending(): boolean {
    return this.#socket === undefined
  }

  /** The socket. Throws if none was adopted yet; owners use it only once they are connected. */
  get socket(): Socket {
    if (this.#socket === undefined) throw new Error('the transport is being connected')
    return this.#socket
  }

  /** Adopts the socket of a transport that was created without one. */
  adopt(socket: Socket): void {
    this.#socket = socket
    this.cancelOpening = undefined
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

  /** Reads by the events of the socket, which bring a new buffer for each read. */
  readEvents(): void {
    this.#socket?.on('data', (chunk: Buffer) => {
      this.received(chunk, 0, chunk.length)
    })
  }

  /** Called when `length` bytes were read into shared memory. Returns whether more may be read now. */
  receivedShared(length: number): boolean {
    const { memory, start } = this.#parts.sharedReads
    // Large pieces are written as views, which must not change until the peer has read them.
    if (length <= copyLimit) this.received(memory, start, start + length)
    else this.received(Buffer.from(memory.subarray(start, start + length)), 0, length)
    return !this.paused
  }

  received(bytes: Buffer, start: number, end: number): void {
    this.#meter.received += end - start
    if (!this.closed) this.owner.onBytes(bytes, start, end)
  }

  /** Whether bytes wait for the peer, so that no more should be written until onDrain. */
  get needsDrain(): boolean {
    return this.#writer?.needsDrain === true
  }

  /** The socket while views that were appended may still be read until it drains or closes. */
  get bufferHolder(): Socket | undefined {
    const isHeld = this.#queue !== undefined || this.#writer?.holdsViews === true
    return isHeld ? this.#socket : undefined
  }

  /** Number of written bytes that have not reached the kernel. */
  get backlog(): number {
    return this.#writer?.backlog ?? 0
  }

  get writeBuffer(): WriteBuffer | undefined {
    return this.#buffer
  }

  /** Collects what is appended until the next flush as bytes instead of text, if that is possible now. */
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

  /** Whether something was appended since the last write. */
  get hasUnflushed(): boolean {
    return this.#text !== '' || this.#queue !== undefined || (this.#buffer?.length ?? 0) > 0
  }

  /** Drops what was appended since the last write. */
  dropUnflushed(): void {
    this.#bufferToText()
    this.#text = ''
    for (const part of this.#queue ?? []) this.#meter.sent -= part.length
    this.#queue = undefined
  }

  /** Does nothing, because bodies of HTTP/1.1 are framed when they are appended. */
  endBody(): void {}

  /** Writes what was appended. Returns false if the peer is slow. */
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

  /** Writes what was appended, then ends the stream. */
  end(): void {
    if (this.closed) return
    this.flush()
    if (this.#writer === undefined) this.#socket?.end()
    else this.#writer.end()
  }

  /** Drops the connection. The owner is not called again. */
  destroy(): void {
    this.closed = true
    this.#bufferToText()
    if (this.#socket === undefined) this.cancelOpening?.()
    else this.#socket.destroy()
  }

  /**
   * Drops the connection so that the peer sees an error: a reset, or TLS that ends without its alert. A peer that
   * has been sent everything and the end of the stream only sees the connection close.
   */
  reset(): void {
    const socket = this.#socket
    const raw = this.#raw ?? socket
    // A TLS socket that opened its own connection gives no access to the TCP socket.
    if (socket === undefined || raw instanceof TLSSocket || this.#isEnding(socket)) {
      this.destroy()
      return
    }
    this.closed = true
    this.#bufferToText()
    raw?.resetAndDestroy()
    if (raw !== socket) socket.destroy()
  }

  /**
   * Whether the kernel has everything that was written, and will get the end of the stream in this turn of the event
   * loop. libuv does not reset such a handle (EINVAL), and Node then never closes it.
   */
  #isEnding(socket: Socket): boolean {
    return socket.writableEnded && !socket.writableFinished && this.backlog === 0
  }

  /** Converts the buffered bytes to text, because what follows does not fit into the buffer. */
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

  /** Returns undefined if the connection is closed or has no socket yet. */
  #openWriter(): SocketWriter | undefined {
    this.writes++
    if (this.closed) return undefined
    if (this.#writer === undefined && this.#socket !== undefined) {
      this.#writer = this.#makeWriter(this.#socket)
    }
    return this.#writer
  }

  #makeWriter(socket: Socket): SocketWriter {
    const writes = this.writesStream ? undefined : this.#parts.handleWrites
    return writes?.writerFor(socket, this) ?? new StreamWriter(socket, this)
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
    // Notified later, because the owner may be in the middle of this write.
    if (wasWaiting) process.nextTick(() => this.onWritten())
  }
}
