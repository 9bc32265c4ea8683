/**
 * Counts the bytes that the gateway has read of a message while it has written nothing for it. Wherever it keeps
 * them, so many it must hold.
 */
export class HeldBytes {
  #held = 0
  #isStopped = false
  /** Writes of the gateway when it read last. */
  #writes = 0
  most = 0

  /** The gateway has read bytes. `writes`: how often it has written anything, which may have been these bytes. */
  read(bytes: number, writes = 0): void {
    if (this.#isStopped) return
    if (writes !== this.#writes) this.#held = 0
    this.#writes = writes
    this.#held += bytes
    this.most = Math.max(this.most, this.#held)
  }

  /** The system of the gateway has taken bytes to send them, perhaps all that were held. */
  wrote(): void {
    this.#held = 0
  }

  /** What the gateway reads from now on, it drops. */
  stop(): void {
    this.#isStopped = true
  }
}
