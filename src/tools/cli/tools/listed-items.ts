/** What MCP servers list and have listed, read from the log. */
import type { SluiceEvent } from '../../../../events/index.ts'
import {
  type ObservedItem,
  type ObservedLists,
  observedListsInput,
} from '../../../ground/model/mcp-lists.ts'
import { rowsOf } from '../../../past/explain/listed-items.ts'
import { createFold, type Fold } from '../../../past/replay/index.ts'
import {
  type OpenRecording,
  type RecordingOptions,
  reportProblems,
  withRecording,
} from '../recording/recording.ts'
import type { Output } from '../shared/output.ts'

/** A change of an item by an event. Versions that did not exist are undefined. */
interface ItemChange {
  readonly position: number
  readonly time: string
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly name: string
  readonly before: ObservedItem | undefined
  readonly after: ObservedItem
}

interface ItemApproval {
  readonly position: number
  readonly time: string
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly items: Readonly<Record<string, string | null>>
  readonly reason: string
  readonly author: string
}

export interface ItemHistory {
  readonly fold: Fold
  readonly changes: readonly ItemChange[]
  readonly approvals: readonly ItemApproval[]
  /** Definitions by digest, as far as the log still has them. */
  readonly definitions: ReadonlyMap<string, string>
}

/** Reads all changes that the log still has. */
export function readItemHistory(
  options: RecordingOptions,
  report: Output['report'],
): Promise<ItemHistory> {
  return withRecording(options, async (recording) => {
    const history = await historyIn(recording)
    reportProblems(recording, report)
    return history
  })
}

async function historyIn({ events, derivation, extent }: OpenRecording): Promise<ItemHistory> {
  const fold = createFold(derivation, extent.base)
  const changes: ItemChange[] = []
  const approvals: ItemApproval[] = []
  const definitions = new Map<string, string>()
  for (const { item } of rowsOf(fold, {})) note(definitions, item)
  for await (const { position, event } of events) {
    const before = observedBy(event) ? new Map(itemsOf(fold, event)) : undefined
    fold.apply({ position, event })
    fold.dropChange()
    const { time } = event
    if (event.type === 'dev.sluice.tools.approved.v1') {
      approvals.push({ position, time, ...event.data })
    }
    if (before === undefined || !observedBy(event)) continue
    const { backend, target, list } = event.data
    for (const [name, after] of itemsOf(fold, event)) {
      note(definitions, after)
      if (before.get(name) === after) continue
      changes.push({ position, time, backend, target, list, name, before: before.get(name), after })
    }
  }
  return { fold, changes, approvals, definitions }
}

type Observed = Extract<SluiceEvent, { readonly type: 'dev.sluice.tools.observed.v1' }>
const observedBy = (event: SluiceEvent): event is Observed =>
  event.type === 'dev.sluice.tools.observed.v1'

function itemsOf({ graph }: Fold, { data }: Observed): ReadonlyMap<string, ObservedItem> {
  const lists = graph.inputs.get(observedListsInput(data.backend)) as ObservedLists | undefined
  const found = lists?.find(({ target, list }) => target === data.target && list === data.list)
  return found?.items ?? new Map()
}

function note(definitions: Map<string, string>, { digest, definition }: ObservedItem): void {
  if (definition !== undefined) definitions.set(digest, definition)
}
