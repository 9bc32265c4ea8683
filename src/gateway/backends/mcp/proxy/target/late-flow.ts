import type { Flow } from './transport.ts'

/** A flow around another one that begins later or is replaced, and that is then paused or closed as this one is. */
export class LateFlow implements Flow {
  protected flow: Flow | undefined
  protected isOver = false
  #isPaused = false

  protected attach(flow: Flow): void {
    this.flow = flow
    if (this.isOver) flow.close()
    else if (this.#isPaused) flow.pause()
  }

  pause(): void {
    this.#isPaused = true
    this.flow?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.flow?.resume()
  }

  close(): void {
    if (this.isOver) return
    this.end()
    this.flow?.close()
  }

  /** Called once, at the end. */
  protected end(): void {
    this.isOver = true
  }
}
