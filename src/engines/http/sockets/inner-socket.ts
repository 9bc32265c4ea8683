/** Connections inside the process, from the tunnel of a client to a listener of the gateway. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { socketHighWaterMark } from '../bytes/write-limits.ts'

type Done = (error?: Error | null) => void

/** One end of a connection inside the process. It has the members of a socket that the engine uses. */
class InnerSocket extends Duplex {
  #peer: InnerSocket | undefined
  /** Called when the peer has room for more. */
  #onTaken: Done | undefined

  static pair(): readonly [InnerSocket, InnerSocket] {
    const near = new InnerSocket(innerOptions)
    const far = new InnerSocket(innerOptions)
    near.#peer = far
    far.#peer = near
    return [near, far]
  }

  override _read(): void {
    this.#peer?.taken()
  }

  taken(error?: Error): void {
    const onTaken = this.#onTaken
    this.#onTaken = undefined
    onTaken?.(error)
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    const peer = this.#peer
    if (peer === undefined || peer.destroyed) {
      done(failure('EPIPE'))
      return
    }
    this.#onTaken = done
    // The writer may reuse its bytes before the peer has read them, so they are copied.
    peer.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk))
  }

  override _final(done: Done): void {
    if (this.#peer?.destroyed === false) this.#peer.push(null)
    done()
  }

  override _destroy(error: Error | null, done: Done): void {
    const peer = this.#peer
    this.#peer = undefined
    if (peer !== undefined && !peer.destroyed) {
      if (error !== null) peer.destroy(failure('ECONNRESET'))
      else if (!this.writableFinished) peer.push(null)
      peer.taken(failure('EPIPE'))
    }
    done(error)
  }

  /** Drops the connection so that the peer sees an error. */
  resetAndDestroy(): this {
    this.#peer?.destroy(failure('ECONNRESET'))
    return this.destroy()
  }
}

const innerOptions = { highWaterMark: socketHighWaterMark, decodeStrings: false }

const failure = (code: string): Error =>
  Object.assign(new Error(`${code}: the connection inside the gateway was closed`), { code })

/** Returns both ends of a new connection: of the tunnel, and of the listener. */
export function innerConnection(): readonly [Socket, Socket] {
  return InnerSocket.pair() as readonly unknown[] as readonly [Socket, Socket]
}

/** Whether a socket is the end of such a connection, which has no handle. */
export const isInner = (socket: unknown): boolean => socket instanceof InnerSocket
