/** `sluice explain tool` says since when MCP servers list a tool, how clients see it, and which routes and rules lead to it. */
import { activationOf, compileCel } from '../../../engines/cel/index.ts'
import { backendLevels, type ListenerPlace, ruleLevels } from '../../../gateway/policies/merge.ts'
import type { McpTarget } from '../../../ground/model/mcp-targets.ts'
import { objectText } from '../../../ground/model/names.ts'
import type { RouteResource, VersionedResource } from '../../../ground/model/resources.ts'
import { fieldsAt, policiesByTarget } from '../../../past/explain/effective-policies.ts'
import { type ListedItemRow, rowsOf } from '../../../past/explain/listed-items.ts'
import type { Fold } from '../../../past/replay/index.ts'
import type { RecordingOptions } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output } from '../shared/output.ts'
import { differenceLines, itemPath, shortDigest, warningsAbout } from '../tools/item-text.ts'
import { type ItemHistory, readItemHistory } from '../tools/listed-items.ts'
import { type ItemOffer, type OfferingBackend, offerLines, offerOf } from './tool-offer.ts'

type Visibility = 'visible' | 'hidden' | 'depends on the client'

/** A rule of a route that leads to the backend of the tool. */
interface ToolRoute {
  /** `Kind namespace/name` and the position of the rule. */
  readonly route: string
  readonly hosts: readonly string[]
  readonly visible: Visibility
  /** The rules that decide, with the policies that they are from. */
  readonly rules: readonly string[]
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
    const routes = routesTo(history.fold, row).map((route) =>
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

function routesTo(fold: Fold, row: ListedItemRow): ToolRoute[] {
  const resources = fold.resources()
  const sections = targetOf(fold, row)?.sections ?? []
  return resources.flatMap(({ resource }) => {
    if (resource.type !== 'route' || !leadsTo(resource, row.backend)) return []
    const rules = rulesFor(resources, resource, row, sections)
    const { route, ruleIndex, attachments } = resource
    const hosts = attachments.flatMap(({ hostnames }) => hostnames).filter((host) => host !== '')
    return [
      {
        route: `${objectText(route)} rule ${ruleIndex}`,
        hosts: [...new Set(hosts)],
        visible: visibilityBy(rules),
        rules: rules.map(({ action, expressions, policy, result }) => {
          return `${action} rule of ${policy}: ${expressions.join(' || ')} (${result})`
        }),
      },
    ]
  })
}

const leadsTo = ({ backends }: RouteResource, backend: string): boolean =>
  backends.some(
    ({ target }) => target.type === 'backend' && `${target.namespace}/${target.name}` === backend,
  )

interface JudgedRule {
  readonly action: 'Allow' | 'Deny' | 'Require'
  readonly expressions: readonly string[]
  readonly policy: string
  readonly result: 'true' | 'false' | 'depends on the client'
}

/** The rules for items that apply to clients of a route, with their results for this item. */
function rulesFor(
  resources: readonly VersionedResource[],
  route: RouteResource,
  row: ListedItemRow,
  sections: readonly string[],
): JudgedRule[] {
  const context = { policies: policiesByTarget(resources), originOf: () => undefined }
  const places = route.attachments.flatMap(({ listener }) => placeOf(resources, listener) ?? [])
  const [namespace = '', name = ''] = row.backend.split('/')
  const backend = { kind: 'GatewayBackend', namespace, name }
  const found = places.flatMap((place) => {
    const levels = backendLevels(ruleLevels(place, route), { backend, sections })
    return fieldsAt(context, 'backend', 'PostRouting', levels)
      .filter(({ field }) => field === 'mcp')
      .flatMap(({ policies }) => policies.filter(({ state }) => state === 'in force'))
  })
  const rules = new Map(found.map((one) => [objectText(one.policy), one.config]))
  return [...rules].flatMap(([policy, config]) => {
    const { authorization } = (config ?? {}) as { authorization?: RuleConfig }
    if (authorization === undefined) return []
    return [{ ...authorization, policy, result: resultOf(authorization.expressions, row) }]
  })
}

type RuleConfig = Pick<JudgedRule, 'action' | 'expressions'>

function placeOf(resources: readonly VersionedResource[], key: string): ListenerPlace | undefined {
  const found = resources.find(({ resource }) => resource.key === key)?.resource
  if (found?.type !== 'listener') return undefined
  return { ...found, gateway: { kind: 'Gateway', ...found.gateway } }
}

const typeOf: Readonly<Record<string, string>> = { tools: 'tool', prompts: 'prompt' }

/** Evaluates the expressions with what is known without a client: the item. */
function resultOf(expressions: readonly string[], row: ListedItemRow): JudgedRule['result'] {
  const { list, target, name } = row
  const item = { name, target, uri: name }
  const mcp = { target, [typeOf[list] ?? 'resource']: item }
  const results = expressions.map((source) => {
    const compiled = compileCel(source)
    if (!compiled.ok) return undefined
    return compiled.value.evaluate(activationOf({ mcp }))
  })
  if (results.includes(true)) return 'true'
  return results.every((result) => result === false) ? 'false' : 'depends on the client'
}

function visibilityBy(rules: readonly JudgedRule[]): Visibility {
  const of = (action: JudgedRule['action']) => rules.filter((rule) => rule.action === action)
  const [deny, require, allow] = [of('Deny'), of('Require'), of('Allow')]
  const isHidden =
    deny.some(({ result }) => result === 'true') ||
    require.some(({ result }) => result === 'false') ||
    (allow.length > 0 && allow.every(({ result }) => result === 'false'))
  if (isHidden) return 'hidden'
  const isVisible =
    deny.every(({ result }) => result === 'false') &&
    require.every(({ result }) => result === 'true') &&
    (allow.length === 0 || allow.some(({ result }) => result === 'true'))
  return isVisible ? 'visible' : 'depends on the client'
}
