/** An object that collects bytes and writes them later. */
export interface Flushable {
  flushNow(): void
}

/**
 * Flushes objects at the end of a tick of the event loop, so that a connection that carries many
 * messages at once sends them with one system call.
 */
export class FlushQueue {
  #waiting: Flushable[] = []
  #spare: Flushable[] = []
  readonly #run = (): void => this.#flush()

  /** Queues an object. Callers must not add it again before it is flushed. */
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
