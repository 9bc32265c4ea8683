import type { Socket } from 'node:net'
import type { SocketWriter, WriterOwner, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'
import { encryptedHighWaterMark } from '../bytes/write-limits.ts'
import { startParts, type WritableHandle, type WriteRequest, writeError } from './write-request.ts'

/**
 * Writes into the handle of a TLS socket, bypassing Node's streams. Unlike a plaintext handle, it
 * accepts one write at a time, and reports the end of a write later even if the kernel accepted
 * everything at once. Later writes are collected until then and sent together in as few records as
 * possible.
 */
export class TlsHandleWriter implements SocketWriter {
  readonly #socket: Socket
  readonly #handle: WritableHandle
  readonly #owner: WriterOwner
  readonly #Request: new () => WriteRequest
  /** Two requests take turns, because Node uses a request until its callback has returned. */
  #request: WriteRequest
  #spareRequest: WriteRequest | undefined
  #isBusy = false
  #queue: WrittenPart[] = []
  /** Whether views wait in the queue. Bytes that were written are encrypted and not referenced. */
  holdsViews = false
  #ends = false
  /** Number of bytes of the current write and of those after it. */
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
      this.#request = this.#spareRequest ?? this.#newRequest()
      this.#spareRequest = taken
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

  /** Writes the buffer, which the handle encrypts or copies before it returns. */
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
    else this.#started(startParts(this.#handle, this.#freeRequest(), parts))
    if (this.holdsViews || this.backlog >= encryptedHighWaterMark) this.needsDrain = true
  }

  #enqueue(parts: readonly WrittenPart[]): void {
    for (const part of parts) {
      if (typeof part !== 'string') this.holdsViews = true
      this.#queue.push(part)
    }
  }

  /** Ends TLS after everything that was written. */
  end(): void {
    if (this.#isBusy) this.#ends = true
    else this.#socket.end()
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
