/** Milliseconds of work after which waiting messages are handled. */
const sliceMs = 24
const stepsPerLook = 16

const turns = new MessageChannel()
let resume: (() => void)[] = []
turns.port1.onmessage = () => {
  const waiting = resume
  resume = []
  for (const run of waiting) run()
}

/** Resolves after the messages that wait; a timer would wait for 4 ms. */
const nextTask = () =>
  new Promise<void>((resolve) => {
    resume.push(resolve)
    turns.port2.postMessage(undefined)
  })

/** A part of long work, after which waiting messages are handled. */
export class Slice {
  #steps = 0
  #begun = performance.now()

  /** The clock is not read at each step. */
  isOver(): boolean {
    return ++this.#steps % stepsPerLook === 0 && performance.now() - this.#begun > sliceMs
  }

  async next(): Promise<void> {
    await nextTask()
    this.#begun = performance.now()
  }
}
