/** Records what proxies have seen that MCP servers list, if it differs from what the log says. */
import { randomUUID } from 'node:crypto'
import { toolsObserved } from '../../../events/index.ts'
import {
  findList,
  type ListReport,
  maxReturns,
  type ObservedList,
  type ObservedLists,
  observedListsInput,
} from '../../ground/model/mcp-lists.ts'
import type { Fold } from '../actors/fold.ts'
import { newEvent } from '../log/index.ts'
import type { StartedPlane } from './parts.ts'

const source = '/sluice/xds'
/** Definitions of one event have at most this length together, or there is only one. */
const eventLength = 262_144

export class ToolsRecorder {
  readonly #fold: Fold
  readonly #writer: StartedPlane['writer']
  /** Part of event ids that is different in every run. */
  readonly #run = randomUUID()
  #count = 0
  /** The proxies whose first reading of a list is not complete, by list. */
  readonly #reading = new Map<string, string>()

  constructor({ fold, writer }: Pick<StartedPlane, 'fold' | 'writer'>) {
    this.#fold = fold
    this.#writer = writer
  }

  report(proxy: string, report: ListReport): void {
    const { backend, target, list, pinning, isFirst, isLast } = report
    const lists = this.#fold.graph.inputs.get(observedListsInput(backend))
    const known = findList(lists as ObservedLists | undefined, target, list)
    const key = `${backend} ${target} ${list}`
    if (known === undefined && isFirst) this.#reading.set(key, proxy)
    const isReading = isFirst && this.#reading.get(key) === proxy
    if (isLast) this.#reading.delete(key)
    const items = report.items.filter((item) => isNews(known, item))
    const removed = missingIn(report, known).filter((name) => isListed(known, name))
    const isApproved = isReading || pinning === 'Off'
    if (items.length + removed.length === 0 && known !== undefined) return
    const [namespace = '', name = ''] = backend.split('/')
    const events = splitItems(items).map((part, at) => {
      const own = { items: part, removed: at === 0 ? removed : [] }
      const data = { backend, target, list, proxy, isApproved, ...own }
      const id = `0:${this.#run}:${++this.#count}:tools`
      return newEvent(
        toolsObserved,
        { source, epoch: 0 },
        { kind: 'Tools', namespace, name },
        { id, data },
      )
    })
    this.#writer.enqueue('delivery', events)
  }
}

function isNews(known: ObservedList | undefined, { name, digest }: ListReport['items'][number]) {
  const item = known?.items.get(name)
  if (item === undefined) return true
  if (item.digest === digest && item.isGone !== true) return false
  // Servers that give each client another version are recorded once for each version.
  const isReturn = item.digest === digest || item.earlier.includes(digest)
  return !isReturn || item.returns < maxReturns
}

/** Names of items that the server no longer lists. */
function missingIn(
  { isComplete, items, removed }: ListReport,
  known: ObservedList | undefined,
): readonly string[] {
  if (!isComplete || known === undefined) return removed
  const names = new Set(items.map(({ name }) => name))
  return [...known.items.keys()].filter((name) => !names.has(name))
}

function isListed(known: ObservedList | undefined, name: string): boolean {
  const item = known?.items.get(name)
  return item !== undefined && item.isGone !== true && item.returns < maxReturns
}

function splitItems(items: ListReport['items']): ListReport['items'][] {
  const parts: ListReport['items'][number][][] = [[]]
  let length = 0
  for (const item of items) {
    const own = item.name.length + (item.definition?.length ?? 0)
    length += own
    if (length > eventLength && parts.at(-1)?.length !== 0) {
      parts.push([])
      length = own
    }
    parts.at(-1)?.push(item)
  }
  return parts
}
