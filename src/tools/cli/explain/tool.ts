/** `sluice explain tool` says since when MCP servers list a tool, how clients see it, and which routes and rules lead to it. */
import type { McpTarget } from '../../../ground/model/mcp-targets.ts'
import { type ListedItemRow, rowsOf } from '../../../past/explain/listed-items.ts'
import type { Fold } from '../../../past/replay/index.ts'
import type { RecordingOptions } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output } from '../shared/output.ts'
import { differenceLines, itemPath, shortDigest, warningsAbout } from '../tools/item-text.ts'
import { type ItemHistory, readItemHistory } from '../tools/listed-items.ts'
import { type RouteVerdict, routeVerdicts, type Verdict } from './route-rules.ts'
import { type ItemOffer, type OfferingBackend, offerLines, offerOf } from './tool-offer.ts'

type Visibility = 'visible' | 'visible, calls are refused' | 'hidden' | 'depends on the client'

interface ToolRoute extends Omit<RouteVerdict, 'verdict' | 'access'> {
  readonly visible: Visibility
}

/**
 * `name` is the name at the server, that for clients, or `target_name`. The exit code is 1 if no server lists it.
 */
export async function explainTool(
  name: string,
  options: RecordingOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const history = await readItemHistory(options, report)
  const all = rowsOf(history.fold, {})
  const offers = new Map(
    all.map((row) => {
      const backend = backendOf(history.fold, row)
      return [row, backend && offerOf(backend, row, all)]
    }),
  )
  const rows = all.filter((row) => {
    const names = [row.name, `${row.target}_${row.name}`, offers.get(row)?.clientName]
    return names.includes(name)
  })
  if (rows.length === 0) {
    report(`no proxy has reported an item ${name}: a client must list it first`)
    return { text: () => [], exitCode: exitCode.negative }
  }
  const explained = rows.map((row) => {
    const pinning = targetOf(history.fold, row)?.pinning ?? 'Off'
    const offer = offers.get(row)
    const routes = routesTo(history.fold, row, offer?.clientName).map((route) =>
      offer?.hiddenBy === undefined ? route : { ...route, visible: 'hidden' as const },
    )
    return { row, pinning, offer, routes, events: eventsOf(history, row) }
  })
  return {
    text: () => explained.flatMap(textOf),
    json: explained.map(({ row: { item, ...row }, pinning, offer, routes, events }) => ({
      ...row,
      ...item,
      pinning,
      ...(offer && { offer }),
      routes,
      events: events.map(({ lines: _, ...event }) => event),
    })),
  }
}

type Explained = {
  readonly row: ListedItemRow
  readonly pinning: string
  readonly offer: ItemOffer | undefined
  readonly routes: readonly ToolRoute[]
  readonly events: readonly ToolEvent[]
}

function textOf({ row, pinning, offer, routes, events }: Explained): string[] {
  const { item, state } = row
  const isWithheld = pinning === 'Block' && (state === 'changed' || state === 'new')
  return [
    itemPath(row),
    `  ${state}${isWithheld ? ', withheld from clients' : ''} (pinning: ${pinning}), version ${shortDigest(item.digest)} since ${item.since}, first seen ${item.firstSeen}`,
    ...offerLines(offer).map((line) => `  ${line}`),
    ...warningsAbout(item.definition ?? ''),
    ...(routes.length === 0 ? ['  no route leads to it'] : []),
    ...routes.flatMap(({ route, hosts, visible, rules }) => [
      `  ${route}${hosts.length === 0 ? '' : ` (${hosts.join(', ')})`}: ${isWithheld ? 'hidden' : visible}`,
      ...rules.map((rule) => `    ${rule}`),
    ]),
    ...events.flatMap(({ position, time, text, lines }) => [
      `  event ${position}, ${time}: ${text}`,
      ...lines.map((line) => `  ${line}`),
    ]),
  ]
}

// Events ------------------------------------------------------------------------------------------

interface ToolEvent {
  readonly position: number
  readonly time: string
  readonly text: string
  readonly lines: readonly string[]
}

function eventsOf({ changes, approvals, definitions }: ItemHistory, row: ListedItemRow) {
  const isSame = (one: {
    readonly backend: string
    readonly target: string
    readonly list: string
  }) => one.backend === row.backend && one.target === row.target && one.list === row.list
  const definitionOf = (digest: string | undefined) => digest && definitions.get(digest)
  const seen = changes
    .filter((change) => isSame(change) && change.name === row.name)
    .map(({ position, time, before, after }): ToolEvent => {
      if (after.isGone === true) return { position, time, text: 'no longer listed', lines: [] }
      const text = `listed as version ${shortDigest(after.digest)}`
      const old = definitionOf(before?.digest)
      return { position, time, text, lines: differenceLines(old, definitionOf(after.digest)) }
    })
  const approved = approvals
    .filter((approval) => isSame(approval) && row.name in approval.items)
    .map(({ position, time, items, author, reason }): ToolEvent => {
      const digest = items[row.name]
      const what = digest ? `version ${shortDigest(digest)} approved` : 'approval revoked'
      return { position, time, text: `${what} by ${author}: ${reason}`, lines: [] }
    })
  return [...seen, ...approved].sort((a, b) => a.position - b.position)
}

// Routes ------------------------------------------------------------------------------------------

function targetOf(fold: Fold, row: ListedItemRow): McpTarget | undefined {
  return backendOf(fold, row)?.targets.find(({ name }) => name === row.target)
}

function backendOf(fold: Fold, { backend }: ListedItemRow): OfferingBackend | undefined {
  for (const { resource } of fold.resources()) {
    if (resource.type !== 'backend' || resource.destination.type !== 'mcp') continue
    if (`${resource.namespace}/${resource.name}` !== backend) continue
    return resource.destination
  }
  return undefined
}

function routesTo(fold: Fold, row: ListedItemRow, clientName = row.name): ToolRoute[] {
  const { backend, list, target, name } = row
  const { type, method } = typeOf[list] ?? resource
  const known = { mcp: { target, [type]: { name, target, uri: name } } }
  const item = { name: clientName, uri: clientName }
  const knownOfMessage = {
    request: { method: 'POST' },
    mcp: { method, methodName: method, [type]: item },
  }
  const sections = targetOf(fold, row)?.sections ?? []
  const question = { backend, sections, field: 'mcp', known, knownOfMessage } as const
  return routeVerdicts(fold.resources(), question).map(({ verdict, access, ...route }) => ({
    ...route,
    visible: visibilityOf(verdict, access),
  }))
}

const resource = { type: 'resource', method: 'resources/read' }
const typeOf: Readonly<Record<string, typeof resource>> = {
  tools: { type: 'tool', method: 'tools/call' },
  prompts: { type: 'prompt', method: 'prompts/get' },
}

function visibilityOf(verdict: Verdict, access: Verdict): Visibility {
  if (verdict === 'refused') return 'hidden'
  if (access === 'refused' && verdict === 'allowed') return 'visible, calls are refused'
  return verdict === 'allowed' && access === 'allowed' ? 'visible' : 'depends on the client'
}
