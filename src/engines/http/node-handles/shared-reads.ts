import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { IoCore } from '../../core/index.ts'
import type { ReadInto } from '../bytes/read-buffers.ts'
import { readBufferSize } from '../bytes/read-buffers.ts'

/** The method of a handle with which a second socket can read from it into our memory. */
interface ReadableHandle {
  useUserBuffer(buffer: Uint8Array): void
}

interface HandleOwner {
  _handle?: Partial<ReadableHandle> | null
}

/**
 * One buffer in the core's memory into which clients are read, and backends whose bytes are forwarded
 * unread. Reads allocate nothing, and heads are parsed where they arrive. The bytes are valid during
 * the callback. Node reads into a given buffer only for sockets that it connects itself. The handle of
 * an accepted socket is therefore moved to a second socket. If a Node does not allow that, `takeOver`
 * returns undefined, and the socket is read by its 'data' events. The server does not notice when such
 * a socket closes: do not wait for its 'close' event.
 */
export class SharedReads {
  readonly memory: Buffer
  readonly start: number
  readonly #view: Buffer
  readonly #isAllowed: boolean
  readonly #keys: OnreadKeys | undefined

  constructor(core: IoCore, isAllowed: boolean) {
    this.memory = core.bytes
    this.start = core.allocate(readBufferSize)
    this.#view = this.memory.subarray(this.start, this.start + readBufferSize)
    this.#isAllowed = isAllowed
    this.#keys = isAllowed ? findOnreadKeys() : undefined
  }

  /** Moves the handle of an accepted socket to one that reads into the buffer. `onRead`: false pauses. */
  takeOver(
    socket: Socket,
    highWaterMark: number,
    onRead: (length: number) => boolean,
  ): Socket | undefined {
    const owner = socket as unknown as HandleOwner
    const handle = owner._handle
    if (!this.#isAllowed || typeof handle?.useUserBuffer !== 'function') return undefined
    if (socket instanceof TLSSocket) return this.#takeTls(socket, handle as ReadableHandle, onRead)
    owner._handle = null
    const onread = { buffer: this.#view, callback: onRead }
    // Node's types have `onread` only in the options of `net.connect`.
    return new Socket({ handle, allowHalfOpen: true, highWaterMark, onread } as object)
  }

  /** Options for a socket that will be connected; undefined if sockets are read by their events. */
  readsOf(callback: (length: number) => boolean): ReadInto | undefined {
    return this.#isAllowed ? { buffer: this.#view, callback } : undefined
  }

  /**
   * Reads a TLS socket into the buffer. The socket keeps its handle, which reports more than bytes to
   * it. The fields that `onread` would have set are set after the handshake instead.
   */
  #takeTls(
    socket: TLSSocket,
    handle: ReadableHandle,
    onRead: (length: number) => boolean,
  ): TLSSocket | undefined {
    const keys = this.#keys
    if (keys === undefined || socket.readableLength > 0) return undefined
    const fields = socket as unknown as Record<symbol, unknown>
    if (fields[keys.buffer] !== null || fields[keys.callback] !== null) return undefined
    fields[keys.buffer] = this.#view
    fields[keys.callback] = onRead
    handle.useUserBuffer(this.#view)
    return socket
  }
}

/** The symbols under which sockets store the members of `onread`. */
interface OnreadKeys {
  readonly buffer: symbol
  readonly callback: symbol
}

/** Finds these symbols on a socket of our own, which has no handle and is never connected. */
function findOnreadKeys(): OnreadKeys | undefined {
  const buffer = new Uint8Array(1)
  const callback = (): boolean => true
  const socket = new Socket({ onread: { buffer, callback } } as object)
  const fields = socket as unknown as Record<symbol, unknown>
  const keyOf = (value: unknown) =>
    Object.getOwnPropertySymbols(socket).filter((key) => fields[key] === value)
  const [bufferKey, ...otherBuffers] = keyOf(buffer)
  const [callbackKey, ...otherCallbacks] = keyOf(callback)
  if (bufferKey === undefined || callbackKey === undefined) return undefined
  if (otherBuffers.length > 0 || otherCallbacks.length > 0) return undefined
  return { buffer: bufferKey, callback: callbackKey }
}
