import { PieceQueue } from '../../base/piece-queue.ts'
import type { TunnelEnd } from '../bytes/tunnel.ts'
import { Http2Stream } from './http2-stream.ts'

/**
 * A stream that may leave HTTP: the end of a tunnel that an extended CONNECT has opened (RFC 8441).
 * Data that comes before the tunnel is open waits, within the window, and so does what a slow peer
 * at the other end has no room for.
 */
export abstract class TunnelStream extends Http2Stream implements TunnelEnd {
  #isTunnel = false
  #isPaused = false
  #isEnded = false
  readonly #waiting = new PieceQueue()

  protected abstract onTunnelBytes(bytes: Buffer, start: number, end: number): void
  /** The peer sends nothing more; told once. */
  protected abstract onTunnelEnd(): void

  protected get isTunnel(): boolean {
    return this.#isTunnel
  }

  /** From now on data goes into the tunnel, what has waited first. */
  openTunnel(): void {
    this.#isTunnel = true
    this.#isPaused = false
    for (let piece = this.takeHeld(); piece !== undefined; piece = this.takeHeld()) {
      this.#take(piece, 0, piece.length)
    }
    if (this.isReceiveClosed) this.#endTunnel()
  }

  override onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (!this.#isTunnel) {
      super.onData(bytes, start, end, isLast)
      return
    }
    this.#take(bytes, start, end)
    if (isLast) this.endReceiving('')
  }

  #take(bytes: Buffer, start: number, end: number): void {
    if (this.#isPaused) this.#waiting.push(bytes, start, end)
    else this.#passOn(bytes, start, end)
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
    if (this.#isTunnel && this.isReceiveClosed) this.#endTunnel()
  }

  end(): void {
    this.endBody('')
    this.flush()
  }

  override endReceiving(trailers: string): void {
    super.endReceiving(trailers)
    if (this.#isTunnel) this.#endTunnel()
  }

  #passOn(bytes: Buffer, start: number, end: number): void {
    this.credit(end - start)
    this.onTunnelBytes(bytes, start, end)
  }

  #endTunnel(): void {
    if (this.#waiting.size > 0 || this.#isEnded) return
    this.#isEnded = true
    this.onTunnelEnd()
  }

  override closeBoth(): void {
    super.closeBoth()
    const dropped = this.#waiting.size
    this.#waiting.take()
    if (dropped > 0) this.session.credit(dropped)
  }
}
