/** Reports of what MCP servers list: each is sent once, although several workers make it. */
import { type ListReport, maxListedItems } from '../../../ground/model/mcp-lists.ts'

/** Maximum number of lists of which reports are compared. */
const maxLists = 1_000
/** Maximum number of reports that wait for a controller. */
const maxWaiting = 1_000

export class ReportedLists {
  /** Digests by the names of items, by list. */
  readonly #known = new Map<string, Map<string, string>>()
  readonly #waiting: ListReport[] = []

  /** Returns what no other worker has reported before; undefined if that is nothing. */
  take(report: ListReport): ListReport | undefined {
    const { backend, target, list } = report
    const key = `${backend} ${target} ${list}`
    const known = this.#known.get(key) ?? new Map<string, string>()
    const isNew = known.size === 0
    if (!this.#known.has(key) && this.#known.size >= maxLists) return report
    this.#known.set(key, known)
    const removed = report.isComplete ? missingIn(known, report) : report.removed
    const items = report.items.filter(({ name, digest }) => {
      if (known.get(name) === digest) return false
      if (known.has(name) || known.size < maxListedItems) known.set(name, digest)
      return true
    })
    const gone = removed.filter((name) => known.delete(name))
    const hasNews = items.length + gone.length > 0 || report.isFirst
    if (!hasNews) return undefined
    return { ...report, items, removed: gone, isComplete: report.isComplete && isNew }
  }

  /** Keeps a report until a controller is connected. */
  wait(report: ListReport): void {
    if (this.#waiting.length < maxWaiting) this.#waiting.push(report)
  }

  /** Takes the reports that wait. */
  takeWaiting(): readonly ListReport[] {
    return this.#waiting.splice(0)
  }
}

const missingIn = (known: ReadonlyMap<string, string>, { items }: ListReport): string[] => {
  const names = new Set(items.map(({ name }) => name))
  return [...known.keys()].filter((name) => !names.has(name))
}
