import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { SocketWriter, WriterOwner, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'
import { socketHighWaterMark } from '../bytes/write-limits.ts'
import { TlsHandleWriter } from './tls-handle-writer.ts'
import { startParts, type WritableHandle, type WriteRequest, writeError } from './write-request.ts'

/**
 * Writes directly into the handles of sockets, bypassing Node's stream layer. The kernel accepts
 * nearly every write at once, which then needs no object, no queue and no callback. Handles and their
 * requests are undocumented. `HandleWrites.find` checks that they work as expected; if they do not,
 * sockets are written to as streams (`StreamWriter`).
 */
export class HandleWrites {
  readonly #Request: new () => WriteRequest
  /** The request for the next write. It is reused unless a write has to wait and keeps it. */
  spare: WriteRequest

  private constructor(Request: new () => WriteRequest) {
    this.#Request = Request
    this.spare = new Request()
  }

  /** Returns undefined if this Node's handles do not work as expected. */
  static find(): HandleWrites | undefined {
    const Request = findRequestClass()
    if (Request === undefined) return undefined
    try {
      const request = new Request()
      if (request.getAsyncId() >= 0) return undefined
    } catch {
      return undefined
    }
    return new HandleWrites(Request)
  }

  /** Returns the spare request for a write that has to wait, and creates another one. */
  takeSpare(): WriteRequest {
    const taken = this.spare
    this.spare = new this.#Request()
    return taken
  }

  /** Creates a writer for a connected socket. Returns undefined if the socket's handle lacks a method. */
  writerFor(socket: Socket, owner: WriterOwner): SocketWriter | undefined {
    const handle = (socket as { _handle?: Partial<WritableHandle> | null })._handle
    const has = (method: keyof WritableHandle) => typeof handle?.[method] === 'function'
    if (!has('writeLatin1String') || !has('writeBuffer') || !has('writev')) return undefined
    const writable = handle as WritableHandle
    return socket instanceof TLSSocket
      ? new TlsHandleWriter(this.#Request, socket, writable, owner)
      : new HandleWriter(this, socket, writable, owner)
  }
}

/** Finds the class of requests that sockets pass to their handles, with a handle of our own. */
function findRequestClass(): (new () => WriteRequest) | undefined {
  let found: unknown
  const handle = {
    writeLatin1String(request: object): number {
      found = request.constructor
      return 0
    },
    close: () => {},
    readStart: () => 0,
    readStop: () => 0,
  }
  try {
    const socket = new Socket({ handle } as object)
    socket.on('error', () => {})
    socket.write(' ', 'latin1')
  } catch {
    return undefined
  }
  return typeof found === 'function' && typeof found.prototype?.getAsyncId === 'function'
    ? (found as new () => WriteRequest)
    : undefined
}

function onComplete(this: WriteRequest, status: number): void {
  const { writer, buffer, size = 0 } = this
  this.parts = undefined
  this.buffer = undefined
  buffer?.release()
  this.writer = undefined
  ;(writer as HandleWriter | undefined)?.completed(size, status)
}

/** Writes into the handle of one plaintext socket. */
class HandleWriter implements SocketWriter {
  readonly #writes: HandleWrites
  readonly #socket: Socket
  readonly #handle: WritableHandle
  readonly #owner: WriterOwner
  /** Total size of the writes that the kernel did not accept at once. */
  backlog = 0
  needsDrain = false
  #ends = false

  constructor(writes: HandleWrites, socket: Socket, handle: WritableHandle, owner: WriterOwner) {
    this.#writes = writes
    this.#socket = socket
    this.#handle = handle
    this.#owner = owner
  }

  /** Whether a write waits, which may contain views. */
  get holdsViews(): boolean {
    return this.backlog > 0
  }

  get #isWritable(): boolean {
    return this.#socket.writable && !this.#ends
  }

  writeText(text: string): void {
    if (!this.#isWritable) return
    const { spare } = this.#writes
    const status = this.#handle.writeLatin1String(spare, text)
    if (status !== 0) this.#fail(status)
    else if (spare.getAsyncId() >= 0) this.#await(text.length, undefined)
  }

  writeParts(parts: readonly WrittenPart[]): void {
    if (!this.#isWritable) return
    const { spare } = this.#writes
    let size = 0
    for (const part of parts) size += part.length
    const status = startParts(this.#handle, spare, parts)
    if (status !== 0) this.#fail(status)
    else if (spare.getAsyncId() >= 0) this.#await(size, parts)
  }

  /** Whether no write waits, since a buffer would have to wait with it. */
  get takesBuffer(): boolean {
    return this.backlog === 0
  }

  writeBuffer(buffer: WriteBuffer): void {
    if (!this.#isWritable) {
      buffer.release()
      return
    }
    const { spare } = this.#writes
    const status = this.#handle.writeBuffer(spare, buffer.view())
    if (status === 0 && spare.getAsyncId() >= 0) {
      this.#await(buffer.length, undefined).buffer = buffer
      return
    }
    buffer.release()
    if (status !== 0) this.#fail(status)
  }

  /** Ends the stream after all pending bytes. Until then, the handle can still be reset. */
  end(): void {
    this.#ends = true
    if (this.backlog === 0) this.#socket.end()
  }

  /** Called when the kernel did not accept everything: libuv writes the rest, then calls `onComplete`. */
  #await(size: number, parts: readonly WrittenPart[] | undefined): WriteRequest {
    const request = this.#writes.takeSpare()
    request.oncomplete = onComplete
    request.writer = this
    request.size = size
    request.parts = parts
    this.backlog += size
    if (this.backlog >= socketHighWaterMark) this.needsDrain = true
    return request
  }

  completed(size: number, status: number): void {
    this.backlog -= size
    if (status < 0) this.#fail(status)
    else if (this.backlog === 0) this.#drained()
  }

  #drained(): void {
    if (this.#ends) this.#socket.end()
    if (!this.needsDrain) return
    this.needsDrain = false
    this.#owner.onWritten()
  }

  #fail(status: number): void {
    if (this.#socket.destroyed) return
    this.#owner.onWriteError(writeError(status))
  }
}
