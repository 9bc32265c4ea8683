/**
 * Tells turns of the event loop apart, while somebody asks. What was there when a turn began has
 * happened before anything that is written in it: a peer whose end is read in the turn in which a
 * request was written to it had closed before it could see that request. (A turn in which more than
 * a thousand sockets are ready looks at the kernel again; so close a case is not told apart.)
 */
export class Turns {
  #count = 0
  #isCounting = false
  readonly #pass = (): void => {
    this.#count++
    this.#isCounting = false
  }

  /** The number of this turn. */
  get current(): number {
    if (!this.#isCounting) {
      this.#isCounting = true
      setImmediate(this.#pass)
    }
    return this.#count
  }
}
