/** Tracks unknown inputs. A simulation never guesses them. */

/**
 * Thrown when a step reads an unknown input. All requests share one object, because a stack trace for each
 * would cost more than the rest of the simulation.
 */
const unknownInput = new Error('an input of the simulation is unknown')

export class Unknowns {
  /** Why the verdict of the current step cannot be computed. It stays set if the step catches the error. */
  reason: string | undefined
  /** True while a step runs. Otherwise reading an unknown input has no effect on the verdict. */
  isStrict = false
  /** Called if an unknown input is read outside steps; set while a backend handles the request. */
  onRead: ((reason: string) => void) | undefined

  /** Called at the start of a step. */
  begin(): void {
    this.reason = undefined
    this.isStrict = true
  }

  /** Called at the end of a step. Returns why its verdict cannot be computed; undefined if it can. */
  end(): string | undefined {
    this.isStrict = false
    return this.reason
  }

  /** Reads an unknown input. Throws in a step, otherwise returns undefined. */
  read(reason: string): undefined {
    if (!this.isStrict) {
      this.onRead?.(reason)
      return undefined
    }
    this.reason ??= reason
    throw unknownInput
  }

  /** Marks an input as unknown without throwing, for a call whose failure is reported in another way. */
  mark(reason: string): void {
    if (this.isStrict) this.reason ??= reason
    else this.onRead?.(reason)
  }
}
