import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { IoCore } from '../../core/index.ts'
import type { ReadInto } from '../bytes/read-buffers.ts'
import { readBufferSize } from '../bytes/read-buffers.ts'

/** What a socket's handle must offer so that a second socket can read from it into our memory. */
interface ReadableHandle {
  useUserBuffer(buffer: Uint8Array): void
}

interface HandleOwner {
  _handle?: Partial<ReadableHandle> | null
}

/** `onread` of Node's documentation, which the types know of `net.connect` alone. */
interface TakenOptions {
  readonly handle: unknown
  readonly allowHalfOpen: boolean
  readonly highWaterMark: number
  readonly onread: {
    readonly buffer: Uint8Array
    readonly callback: (length: number) => boolean
  }
}

/**
 * One buffer into which clients are read, and backends whose bytes are forwarded as they are, in the
 * core's memory: no allocation for a read, and heads are parsed where they arrive. Its bytes are
 * valid during the callback.
 *
 * Node reads into a given buffer only for sockets that it connects itself. For accepted ones the
 * handle is handed to a second socket; where a Node does not allow that, `takeOver` returns
 * undefined and the socket is read by its 'data' events. A server does not see a socket that was
 * taken over close: do not wait for its 'close' event.
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

  /** Moves an accepted socket's handle to one that reads into the buffer; `onRead` returns whether to go on. */
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
    const options: TakenOptions = {
      handle,
      allowHalfOpen: true,
      highWaterMark,
      onread: { buffer: this.#view, callback: onRead },
    }
    return new Socket(options as object)
  }

  /** For a socket that is about to be connected; `undefined` if sockets are read by their events. */
  readsOf(callback: (length: number) => boolean): ReadInto | undefined {
    return this.#isAllowed ? { buffer: this.#view, callback } : undefined
  }

  /**
   * A TLS socket stays the owner of its handle, which tells it more than bytes. What `onread` would
   * have set is set later, when the handshake is over.
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

/** Where sockets keep what they were given as `onread`. */
interface OnreadKeys {
  readonly buffer: symbol
  readonly callback: symbol
}

/** Seen on a socket of our own, which has no handle and is never connected. */
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
