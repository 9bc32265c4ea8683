/** What MCP servers list, for controllers that connect later: they may not know it. */
import {
  type ListedItem,
  type ListReport,
  maxListedItems,
  type ReportList,
} from '../../../ground/model/mcp-lists.ts'

/** Items of one report that is sent again. */
const batch = 100
/** Maximum number of lists that are kept. */
const maxLists = 1_000

interface ReportedList {
  /** The last report, without items. */
  about: ListReport
  readonly items: Map<string, ListedItem>
}

export class ReportedLists {
  readonly #lists = new Map<string, ReportedList>()

  /** Keeps a report. Returns what no other worker has reported before; undefined if that is nothing. */
  take(report: ListReport): ListReport | undefined {
    const { backend, target, list } = report
    const key = `${backend} ${target} ${list}`
    const about = { ...report, items: [], removed: [] }
    const known = this.#lists.get(key) ?? { about, items: new Map<string, ListedItem>() }
    if (!this.#lists.has(key) && this.#lists.size >= maxLists) return report
    this.#lists.set(key, known)
    known.about = about
    const items = report.items.filter((item) => {
      const before = known.items.get(item.name)
      if (before?.digest === item.digest) return false
      if (before === undefined && known.items.size >= maxListedItems) return true
      known.items.set(item.name, item)
      return true
    })
    const removed = report.removed.filter((name) => known.items.delete(name))
    const isNews = items.length + removed.length > 0 || report.isFirst
    return isNews ? { ...report, items, removed } : undefined
  }

  /** Reports all lists again. */
  repeat(send: ReportList): void {
    for (const { about, items } of this.#lists.values()) {
      const all = [...items.values()]
      for (let from = 0; from === 0 || from < all.length; from += batch) {
        const isLast = from + batch >= all.length
        send({ ...about, items: all.slice(from, from + batch), isFirst: true, isLast })
      }
    }
  }
}
