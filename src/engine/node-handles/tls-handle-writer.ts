import type { Socket } from 'node:net'
import type { SocketWriter, WriterOwner, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'
import { encryptedHighWaterMark } from '../bytes/write-limits.ts'
import { type WritableHandle, type WriteRequest, writeError } from './write-request.ts'

/**
 * The way into the handle of a TLS socket, past Node's streams. Other than a plaintext one's it takes
 * one write at a time, and tells later that a write is over although the kernel took all of it at
 * once. What is written meanwhile is gathered and leaves together, in as few records as it fits.
 */
export class TlsHandleWriter implements SocketWriter {
  readonly #socket: Socket
  readonly #handle: WritableHandle
  readonly #owner: WriterOwner
  readonly #Request: new () => WriteRequest
  /** Of the one write. It is Node's until its callback is over, and so two take turns. */
  #request: WriteRequest
  #rested: WriteRequest | undefined
  #isBusy = false
  #queue: WrittenPart[] = []
  /** Views wait in the queue. Bytes that were written are encrypted already and not referenced. */
  holdsViews = false
  #ends = false
  /** Bytes of the write under way and of those behind it. */
  backlog = 0
  needsDrain = false

  constructor(
    Request: new () => WriteRequest,
    socket: Socket,
    handle: WritableHandle,
    owner: WriterOwner,
  ) {
    this.#socket = socket
    this.#handle = handle
    this.#owner = owner
    this.#Request = Request
    this.#request = this.#newRequest()
  }

  #newRequest(): WriteRequest {
    const request = new this.#Request()
    request.oncomplete = onComplete
    request.writer = this
    return request
  }

  #freeRequest(): WriteRequest {
    if (this.#request.getAsyncId() >= 0) {
      const taken = this.#request
      this.#request = this.#rested ?? this.#newRequest()
      this.#rested = taken
    }
    return this.#request
  }

  writeText(text: string): void {
    if (!this.#socket.writable) return
    this.backlog += text.length
    if (this.#isBusy) this.#queue.push(text)
    else this.#started(this.#handle.writeLatin1String(this.#freeRequest(), text))
    if (this.backlog >= encryptedHighWaterMark) this.needsDrain = true
  }

  get takesBuffer(): boolean {
    return !this.#isBusy
  }

  /** What the handle is given it encrypts, or copies, before it returns. */
  writeBuffer(buffer: WriteBuffer): void {
    if (this.#isBusy) this.writeText(buffer.text())
    else if (this.#socket.writable) {
      this.backlog += buffer.length
      this.#started(this.#handle.writeBuffer(this.#freeRequest(), buffer.view()))
    }
    buffer.release()
  }

  writeParts(parts: readonly WrittenPart[]): void {
    if (!this.#socket.writable) return
    for (const part of parts) this.backlog += part.length
    if (this.#isBusy) this.#enqueue(parts)
    else this.#startParts(parts)
    if (this.holdsViews || this.backlog >= encryptedHighWaterMark) this.needsDrain = true
  }

  #enqueue(parts: readonly WrittenPart[]): void {
    for (const part of parts) {
      if (typeof part !== 'string') this.holdsViews = true
      this.#queue.push(part)
    }
  }

  /** The close of TLS goes out behind all that was written. */
  end(): void {
    if (this.#isBusy) this.#ends = true
    else this.#socket.end()
  }

  #startParts(parts: readonly WrittenPart[]): void {
    const [first] = parts
    if (parts.length > 1) {
      const chunks: unknown[] = []
      for (const part of parts) chunks.push(part, 'latin1')
      this.#started(this.#handle.writev(this.#freeRequest(), chunks, false))
    } else if (typeof first === 'string') {
      this.#started(this.#handle.writeLatin1String(this.#freeRequest(), first))
    } else if (first !== undefined) {
      this.#started(this.#handle.writeBuffer(this.#freeRequest(), first))
    }
  }

  #started(status: number): void {
    if (status !== 0) this.#fail(status)
    else if (this.#request.getAsyncId() >= 0) this.#isBusy = true
    else this.backlog = 0
  }

  completed(status: number): void {
    this.#isBusy = false
    this.backlog = 0
    if (status < 0) {
      this.#fail(status)
      return
    }
    const queue = this.#queue
    if (queue.length > 0) {
      this.#queue = []
      this.holdsViews = false
      this.writeParts(queue)
    }
    if (this.#isBusy) return
    if (this.#ends) this.#socket.end()
    else if (this.needsDrain) {
      this.needsDrain = false
      this.#owner.onWritten()
    }
  }

  #fail(status: number): void {
    this.#queue = []
    this.holdsViews = false
    if (!this.#socket.destroyed) this.#owner.onWriteError(writeError(status))
  }
}

function onComplete(this: WriteRequest, status: number): void {
  ;(this.writer as TlsHandleWriter).completed(status)
}
