/** A log that was read and folded: its events, its state at any moment, and when each status changed. */
import { regexProblem } from '../../src/control-plane/api-binding.ts'
import type { ConditionHistory } from '../../src/explain/conditions.ts'
import { historyOf } from '../../src/explain/conditions.ts'
import { ExportLines } from '../../src/log/export-lines.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../src/model/names.ts'
import type { Fold } from '../../src/replay/index.ts'
import { EventTable } from './event-table.ts'
import { Moments } from './moments.ts'

/** A status of an object, from an event on. */
interface StatusSince {
  readonly index: number
  /** Undefined if the object was deleted, or belongs to another controller. */
  readonly status: unknown
}

/** One moment of a log, as views see it. */
export interface Moment {
  readonly log: LoadedLog
  readonly fold: Fold
  /** Index of the last event; -1 before the first. */
  readonly index: number
  /** Position of the last event; 0 before the first. */
  readonly position: number
}

const utf8 = new TextDecoder()

export class LoadedLog {
  readonly events = new EventTable()
  /** Published states whose digests differ from those of this fold. */
  readonly differing: number[] = []
  /** Versions of the fold that published states. */
  readonly foldVersions = new Set<string>()
  readonly #lines: ExportLines
  readonly #moments = new Moments({ checkRegex: regexProblem }, (index) => this.events.read(index))
  readonly #statuses = new Map<ObjectKey, StatusSince[]>()

  constructor(name: string) {
    this.#lines = new ExportLines(name)
  }

  /** Reads and folds one line. Throws like `ExportLines`. */
  add(line: Uint8Array): void {
    const recorded = this.#lines.read(utf8.decode(line))
    if (recorded === undefined) return
    const { event } = recorded
    if (event.type === 'dev.sluice.desired.published.v1')
      this.foldVersions.add(event.data.foldVersion)
    const { delta, statuses, dropped } = this.#moments.add(recorded)
    const index = this.events.length
    for (const { ref, status } of statuses) this.#noteStatus(objectKey(ref), { index, status })
    for (const ref of dropped) this.#noteStatus(objectKey(ref), { index, status: undefined })
    this.events.add(recorded, line, {
      statuses: statuses.length + dropped.length,
      resources: delta.upserted.length + delta.removed.length,
    })
  }

  #noteStatus(object: ObjectKey, since: StatusSince): void {
    const history = this.#statuses.get(object)
    if (history === undefined) this.#statuses.set(object, [since])
    else history.push(since)
  }

  /** The state after an event, valid until the next call. Without a position: after the last one. */
  at(position = Number.POSITIVE_INFINITY): Moment {
    const index = this.events.indexAt(position)
    const fold = this.#moments.after(index + 1)
    return { log: this, fold, index, position: this.events.positions[index] ?? 0 }
  }

  /** How the conditions of an object changed, with the index of the event that caused each change. */
  conditionsOf(ref: ObjectRef): ConditionHistory<number> {
    const statuses = this.#statuses.get(objectKey(ref)) ?? []
    return historyOf(
      undefined,
      statuses.map(({ index, status }) => ({ cause: index, status })),
    )
  }
}
