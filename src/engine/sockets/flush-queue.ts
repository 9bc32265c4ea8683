/** Something with bytes to hand to the kernel. */
export interface Flushable {
  flushNow(): void
}

/**
 * Connections that carry many messages at once collect what is written during one turn of the
 * event loop and send it together: one system call instead of one for each message.
 */
export class FlushQueue {
  #waiting: Flushable[] = []
  #spare: Flushable[] = []
  readonly #run = (): void => this.#flush()

  /** At most once for each until it is flushed; the caller keeps account of that. */
  add(flushable: Flushable): void {
    if (this.#waiting.length === 0) setImmediate(this.#run)
    this.#waiting.push(flushable)
  }

  #flush(): void {
    const due = this.#waiting
    this.#waiting = this.#spare
    for (const flushable of due) flushable.flushNow()
    due.length = 0
    this.#spare = due
  }
}
