/** What MCP servers listed at a moment, who might see it, and how one item changed. */
import type { SluiceEvent } from '../../events/index.ts'
import { showHidden } from '../../src/ground/base/hidden-characters.ts'
import { compareText } from '../../src/ground/model/names.ts'
import { type ListedItemRow, rowsOf } from '../../src/past/explain/listed-items.ts'
import type { LoadedLog, Moment } from '../log/loaded-log.ts'
import { type DiffLine, lineDiff } from './line-diff.ts'
import { mcpModel } from './mcp.ts'

interface ToolVersionsParams {
  /** The time to show; the shown moment if it is not set. */
  readonly fromMs: number | undefined
  readonly toMs: number | undefined
  /** The item whose history is wanted: an id of a row. */
  readonly item: string | undefined
}

interface ToolVersionRow {
  /** Backend, target, list and name, separated by spaces. */
  readonly id: string
  readonly backend: string
  readonly target: string
  readonly list: string
  /** With hidden characters shown. */
  readonly name: string
  /** Digest of the definition, in hex. */
  readonly version: string
  readonly since: string
  readonly state: ListedItemRow['state']
  /** Who may see it by `backend.mcp.authorization`; empty for lists other than tools. */
  readonly seenBy: string
}

/** A change of an item, and what differs in its definition. */
interface ToolEvent {
  readonly position: number
  readonly time: string
  readonly text: string
  readonly lines: readonly DiffLine[]
}

const maxRows = 500
const toolTypes = ['tools.observed', 'tools.approved']
/** Maximum number of events about tools that are read for the history of an item. */
const maxEvents = 500

const idOf = ({
  backend,
  target,
  list,
  name,
}: Omit<ListedItemRow, 'item' | 'approved' | 'state'>) => [backend, target, list, name].join(' ')

export async function toolVersionsModel(shown: Moment, params: ToolVersionsParams) {
  const { fromMs = Number.NEGATIVE_INFINITY, toMs, item } = params
  const moment = toMs === undefined ? shown : await momentAt(shown.log, toMs)
  // What was listed in no part of the time is left out.
  const listed = rowsOf(moment.fold(), {}).filter(
    ({ item: { isGone, since } }) => isGone !== true || Date.parse(since) >= fromMs,
  )
  const all = listed.sort((a, b) => compareText(idOf(a), idOf(b)))
  const chosen = all.find((row) => idOf(row) === item)
  const kept = all.slice(0, maxRows)
  if (chosen !== undefined && !kept.includes(chosen)) kept.push(chosen)
  const nameOf = ({ backend, name }: ListedItemRow) => `${backend} ${name}`
  const { seenBy } = mcpModel(moment, { tools: kept.map(nameOf) })
  const rows = kept.map(
    (row): ToolVersionRow => ({
      id: idOf(row),
      backend: row.backend,
      target: row.target,
      list: row.list,
      name: showHidden(row.name),
      version: row.item.digest,
      since: row.item.since,
      state: row.state,
      seenBy: row.list === 'tools' ? (seenBy[nameOf(row)] ?? '') : '',
    }),
  )
  const events = chosen && (await historyOf(moment, chosen))
  return {
    rows,
    count: all.length,
    chosen: chosen && { ...rows.find(({ id }) => id === item), name: chosen.name, events },
  }
}

async function momentAt(log: LoadedLog, timeMs: number): Promise<Moment> {
  const index = log.events.indexAtTime(timeMs)
  if (index < 0) throw new RangeError('The log has no event before this time.')
  await log.reach(index)
  return log.at(log.events.positions[index])
}

/** The events about an item up to a moment, the newest first. */
async function historyOf({ log, index }: Moment, row: ListedItemRow): Promise<ToolEvent[]> {
  const { events } = log
  const types = new Set(toolTypes.map((type) => events.types.texts.indexOf(type)))
  const about: number[] = []
  for (let at = index; at >= 0 && about.length < maxEvents; at--) {
    if (types.has(events.typeOf[at] ?? -1)) about.unshift(at)
  }
  await events.load(about)
  const history: ToolEvent[] = []
  let before = ''
  for (const at of about) {
    const { position, event } = events.read(at)
    const change = changeBy(event, row)
    if (change === undefined) continue
    const { text, after = before } = change
    history.push({ position, time: event.time, text, lines: lineDiff(before, after) })
    before = after
  }
  return history.reverse()
}

/** What an event says about an item, and the definition that it brings; undefined if it is about others. */
function changeBy({ type, data }: SluiceEvent, row: ListedItemRow) {
  if (type === 'dev.sluice.tools.observed.v1' && isOfList(data, row)) {
    const listed = data.items.find(({ name }) => name === row.name)
    if (listed !== undefined) {
      const text = `listed as version ${listed.digest.slice(0, 12)}`
      return { text, after: definitionText(listed.definition) }
    }
    if (data.removed.includes(row.name)) return { text: 'no longer listed' }
  } else if (type === 'dev.sluice.tools.approved.v1' && isOfList(data, row)) {
    const digest = data.items[row.name]
    if (digest === undefined) return undefined
    const what = digest === null ? 'approval taken back' : `version ${digest.slice(0, 12)} approved`
    return { text: `${what} by ${data.author}: ${data.reason}` }
  }
  return undefined
}

type ListName = Pick<ListedItemRow, 'backend' | 'target'> & { readonly list: string }

const isOfList = (one: ListName, { backend, target, list }: ListName): boolean =>
  one.backend === backend && one.target === target && one.list === list

const definitionText = (definition: string | undefined): string =>
  definition === undefined
    ? 'The definition is too long to be recorded.'
    : showHidden(JSON.stringify(JSON.parse(definition), undefined, 2))
