import { PieceQueue } from '../../base/piece-queue.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import type { StreamOutput } from './stream-output.ts'

/** The stream that a tunnel goes through. */
interface TunnelledStream {
  readonly output: StreamOutput
  readonly isReceiveClosed: boolean
  /** A piece that has waited since before the tunnel was open. */
  takeHeld(): Buffer | undefined
  /** So much data has been taken. */
  credit(length: number): void
  onTunnelBytes(bytes: Buffer, start: number, end: number): void
  /** The peer sends nothing more; called once. */
  onTunnelEnd(): void
}

/**
 * A stream that has left HTTP: the end of a tunnel that an extended CONNECT has opened (RFC 8441).
 * Data that comes before the tunnel is open waits in the stream, within its window; what a slow peer
 * at the other end has no room for waits here.
 */
export class StreamTunnel implements TunnelEnd {
  readonly #stream: TunnelledStream
  /** Data goes into the tunnel. */
  isOpen = false
  #isPaused = false
  #hasEnded = false
  readonly #waiting = new PieceQueue()

  constructor(stream: TunnelledStream) {
    this.#stream = stream
  }

  /** From now on data goes into the tunnel, what has waited first. */
  open(): void {
    const stream = this.#stream
    this.isOpen = true
    this.#isPaused = false
    for (let piece = stream.takeHeld(); piece !== undefined; piece = stream.takeHeld()) {
      this.take(piece, 0, piece.length)
    }
    this.endIfReceived()
  }

  take(bytes: Buffer, start: number, end: number): void {
    if (this.#isPaused) this.#waiting.push(bytes, start, end)
    else this.#passOn(bytes, start, end)
  }

  /** Passes the end of what the peer sends on, behind all that waits. */
  endIfReceived(): void {
    if (!this.isOpen || !this.#stream.isReceiveClosed) return
    if (this.#waiting.size > 0 || this.#hasEnded) return
    this.#hasEnded = true
    this.#stream.onTunnelEnd()
  }

  appendBytes(bytes: Buffer, start: number, end: number): void {
    this.#stream.output.appendBytes(bytes, start, end)
  }

  flush(): boolean {
    return this.#stream.output.flush()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    while (!this.#isPaused) {
      const piece = this.#waiting.shift()
      if (piece === undefined) break
      this.#passOn(piece, 0, piece.length)
    }
    this.endIfReceived()
  }

  end(): void {
    this.#stream.output.end()
  }

  #passOn(bytes: Buffer, start: number, end: number): void {
    this.#stream.credit(end - start)
    this.#stream.onTunnelBytes(bytes, start, end)
  }

  /** Drops what waits; returns how much that was. */
  drop(): number {
    const dropped = this.#waiting.size
    this.#waiting.take()
    return dropped
  }
}
