import type { ObjectKey } from '../../ground/model/names.ts'

/** Maximum number of causes that a decision names. */
export const maxCauses = 16

/** The positions of the events that changed the statuses of objects, in order; the first `maxCauses` + 1 of each. */
export class StatusCauses {
  #causes = new Map<ObjectKey, number[]>()

  note(key: ObjectKey, position: number): void {
    const causes = this.#causes.get(key)
    if (causes === undefined) this.#causes.set(key, [position])
    else if (causes.length <= maxCauses) causes.push(position)
  }

  /** Returns all causes since the last call. */
  take(): ReadonlyMap<ObjectKey, readonly number[]> {
    const causes = this.#causes
    this.#causes = new Map()
    return causes
  }

  clear(): void {
    this.#causes.clear()
  }
}
