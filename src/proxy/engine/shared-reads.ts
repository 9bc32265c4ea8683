import { Socket } from 'node:net'
import type { IoCore } from '../../core/index.ts'
import { readBufferSize } from './read-buffers.ts'

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
 * One buffer into which all plaintext clients are read, in the core's memory: no allocation for a
 * read, and heads are parsed where they arrive. Its bytes are good for the length of a callback.
 *
 * Node reads into a given buffer only for sockets that it connects itself. For accepted ones the
 * handle is handed to a second socket; where a Node does not allow that, `takeOver` returns
 * undefined and the socket is read by its 'data' events. A server does not see a socket that was
 * taken over close: nobody may wait for its 'close' event.
 */
export class SharedReads {
  readonly memory: Buffer
  readonly start: number
  readonly #view: Buffer
  readonly #isAllowed: boolean

  constructor(core: IoCore, isAllowed: boolean) {
    this.memory = core.bytes
    this.start = core.allocate(readBufferSize)
    this.#view = this.memory.subarray(this.start, this.start + readBufferSize)
    this.#isAllowed = isAllowed
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
    owner._handle = null
    const options: TakenOptions = {
      handle,
      allowHalfOpen: true,
      highWaterMark,
      onread: { buffer: this.#view, callback: onRead },
    }
    return new Socket(options as object)
  }
}
