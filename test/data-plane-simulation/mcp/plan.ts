/** What the MCP servers and clients of a world are meant to do. */
import { createHash } from 'node:crypto'
import type { Resource } from '../../../src/ground/model/resources.ts'
import { backend, match, policy, route, toBackend } from '../../proxy/plane-resources.ts'
import type { Random } from '../../virtual-time/random.ts'

/** `sessions`: legacy with session ids; `plain`: legacy without them; `modern`: revision 2026-07-28. */
export type ServerEra = 'sessions' | 'plain' | 'modern'

export interface McpServerPlan {
  /** Name of the target. */
  readonly name: string
  readonly host: string
  readonly era: ServerEra
  /** How it answers a GET without `Last-Event-ID`: with a stream, or with this status. */
  readonly stream: 'open' | 404 | 405
  /** How it accepts notifications. */
  readonly notice: { readonly status: number; readonly type?: string; readonly body: string }
  /** Whether lists have two pages. */
  readonly hasPages: boolean
  /** Whether it has a resource and a prompt. */
  readonly hasItems: boolean
  /** When it forgets all of its sessions; undefined if it never does. */
  readonly forgetsAt: number | undefined
  /** Until when it refuses everything with 503; undefined if it is never down. */
  readonly isUpAt?: number
}

/** What a server does with a call of a tool. The last four are faults. */
export const callStyles = [
  'json',
  'stream',
  'long',
  'polled',
  'asks',
  'refused',
  'number as text',
  'silence',
  'reset',
  'cut',
  'garbage',
] as const
export type CallStyle = (typeof callStyles)[number]
export const faultStyles: readonly CallStyle[] = ['silence', 'reset', 'cut', 'garbage']

export interface McpPlan {
  readonly name: string
  readonly servers: readonly McpServerPlan[]
  readonly isStateless: boolean
  /** Whether clients need an API key, which is their principal. */
  readonly hasKeys: boolean
  readonly timeoutMs: number
  /** What half of the calls of a world do, if they can. */
  readonly favourite: CallStyle
  /** How often a call meets a fault. */
  readonly faultChance: number
}

/** The tools of every server. `closed` is for nobody, `writers` for clients with `X-Role: writer`. */
export const tools = ['open', 'writers', 'closed'] as const
export type Tool = (typeof tools)[number]

export const mayUse = (tool: Tool, isWriter: boolean): boolean =>
  tool === 'open' || (tool === 'writers' && isWriter)

/** Share of worlds that have an MCP backend. */
const share = 0.25
export const mcpPort = 9_200

const notices = [
  { status: 202, body: '' },
  { status: 202, body: '' },
  { status: 204, body: '' },
  { status: 200, type: 'application/json', body: 'null' },
  { status: 200, type: 'application/json', body: '' },
  { status: 200, type: 'text/plain', body: 'ok' },
]

/** Share of worlds with MCP whose servers have resources and prompts. */
const itemShare = 0.35

/** Returns undefined for a world without MCP. `itemRandom` chooses what concerns resources and prompts. */
export function randomMcp(random: Random, itemRandom: Random): McpPlan | undefined {
  if (!random.chance(share)) return undefined
  const hasItems = itemRandom.chance(itemShare)
  const eras = random.pick<readonly ServerEra[]>([
    ['sessions'],
    ['sessions'],
    ['sessions', 'modern'],
    ['modern', 'plain'],
    ['modern'],
  ])
  const hasLoss = random.chance(0.2)
  const servers = Array.from({ length: random.pick([1, 1, 2, 2, 3]) }, (_, at) => ({
    name: `t${at}`,
    host: `10.0.5.${at + 1}`,
    era: random.pick(eras),
    stream: random.pick(['open', 'open', 'open', 404, 405] as const),
    notice: random.pick(notices),
    hasPages: random.chance(0.3),
    hasItems,
    forgetsAt: hasLoss && random.chance(0.6) ? random.between(200, 6_000) : undefined,
  }))
  return {
    name: 'tools',
    servers,
    isStateless: random.chance(0.3),
    hasKeys: random.chance(0.5),
    timeoutMs: random.pick([15_000, 50_000]),
    favourite: random.pick(callStyles),
    faultChance: random.pick([0, 0, 0.15]),
  }
}

/** Lets servers be down when clients begin their sessions, in a fifth of the worlds with MCP. */
export function withOutages(plan: McpPlan, random: Random): McpPlan {
  if (!random.chance(0.2)) return plan
  const servers = plan.servers.map((server) =>
    random.chance(0.5) ? { ...server, isUpAt: random.between(500, 6_000) } : server,
  )
  return { ...plan, servers }
}

export const keyOf = (principal: string): string => `mcp-key-${principal}`

export const principals = ['ann', 'bob', 'eve'] as const

const isWriter = "request.headers['x-role'] == 'writer'"
const toolRule = `mcp.tool.name == 'open' || (mcp.tool.name == 'writers' && ${isWriter})`
/** Everybody may read resources, and only writers may get prompts. */
const itemRule = `mcp.resource.uri.startsWith('res://') || (mcp.prompt.name == 'summary' && ${isWriter})`

export function mcpResources({ name, servers, isStateless, hasKeys, timeoutMs }: McpPlan) {
  const targets = servers.map(({ name, host }) => ({
    name,
    sections: [name],
    protocol: 'StreamableHTTP' as const,
    path: '/mcp',
    destination: { type: 'static' as const, host, port: mcpPort },
  }))
  const hasItems = servers[0]?.hasItems === true
  const rules = {
    action: 'Require',
    policy: { matchExpressions: [hasItems ? `${toolRule} || ${itemRule}` : toolRule] },
  }
  const ofRoute = { kind: 'HTTPRoute', namespace: 'shop', name }
  const ofBackend = { kind: 'GatewayBackend', namespace: 'shop', name }
  const resources: Resource[] = [
    backend(name, { type: 'mcp', targets, isStateless }),
    route({ name, matches: [match(`/${name}`)], to: [toBackend(name)] }),
    policy(
      ofBackend,
      'mcp',
      { authorization: rules },
      { name: 'rules-of-tools', section: 'backend' },
    ),
    policy(ofRoute, 'timeouts', { request: `${timeoutMs}ms` }, { name: 'timeouts-of-tools' }),
  ]
  if (!hasKeys) return resources
  const hashed = principals.map((principal) => {
    const keyHash = `sha256:${createHash('sha256').update(keyOf(principal)).digest('hex')}`
    return { name: principal, text: JSON.stringify({ keyHash }) }
  })
  const config = JSON.stringify({ mode: 'Strict', entries: [], names: [], hashed })
  const spec = { configMapSelector: { matchLabels: { keys: name } } }
  resources.push(policy(ofRoute, 'apiKeyAuthentication', spec, { name: 'keys-of-tools', config }))
  return resources
}

/** What a client does next. */
export type StepKind =
  | 'list'
  | 'call'
  | 'ping'
  | 'stream'
  | 'foreign'
  | 'forged'
  | 'cancelled call'
  | 'broken call'
  | ItemKind

/** Lists, reads and gets of resources and prompts, and subscriptions of legacy clients. */
export const itemKinds = ['resources', 'read', 'prompts', 'prompt', 'subscribe'] as const
export type ItemKind = (typeof itemKinds)[number]

export interface McpStep {
  readonly kind: StepKind
  readonly tool: Tool
  readonly server: McpServerPlan
  readonly style: CallStyle
  readonly delayMs: number
  /** Whether the client does the next step without waiting for this one. */
  readonly isParallel: boolean
}

export interface McpClientPlan {
  readonly principal: (typeof principals)[number]
  readonly isModern: boolean
  readonly isWriter: boolean
  /** Whether it declares that servers may ask it. */
  readonly maySample: boolean
  readonly opensStream: boolean
  readonly steps: readonly McpStep[]
  readonly deletes: boolean
}

const stepKinds: readonly StepKind[] = [
  'list',
  'list',
  'call',
  'call',
  'call',
  'call',
  'call',
  'call',
  'ping',
  'foreign',
  'forged',
  'cancelled call',
  'broken call',
]

/** Adds steps about resources and prompts. */
function withItems(
  random: Random,
  steps: readonly McpStep[],
  { servers }: McpPlan,
  isModern: boolean,
): McpStep[] {
  const all = [...steps]
  for (let count = 1 + random.below(4); count > 0; count--) {
    const server = random.pick(servers)
    const maySubscribe = !isModern && server.era === 'sessions'
    const kind = random.pick(itemKinds.filter((one) => one !== 'subscribe' || maySubscribe))
    const step = {
      tool: 'open',
      style: 'json',
      delayMs: 0,
      isParallel: random.chance(0.4),
    } as const
    all.splice(random.below(all.length + 1), 0, { ...step, kind, server })
  }
  return all
}

export function randomMcpClient(random: Random, plan: McpPlan, itemRandom: Random): McpClientPlan {
  const isModern = random.chance(0.35)
  const steps = Array.from({ length: 1 + random.below(6) }, (): McpStep => {
    const server = random.pick(plan.servers)
    return {
      kind: random.pick(stepKinds),
      tool: random.pick(['open', 'open', 'open', 'writers', 'closed'] as const),
      server,
      style: randomStyle(random, plan, server, isModern),
      delayMs: random.chance(0.4) ? 0 : random.between(0, 800),
      isParallel: random.chance(0.4),
    }
  })
  return {
    principal: random.pick(principals),
    isModern,
    isWriter: random.chance(0.5),
    maySample: random.chance(0.6),
    opensStream: !isModern && random.chance(0.6),
    steps: plan.servers[0]?.hasItems ? withItems(itemRandom, steps, plan, isModern) : steps,
    deletes: random.chance(0.5),
  }
}

function randomStyle(
  random: Random,
  { faultChance, timeoutMs, isStateless, favourite }: McpPlan,
  { era }: McpServerPlan,
  isModern: boolean,
): CallStyle {
  if (random.chance(faultChance)) {
    return faultStyles.includes(favourite) ? favourite : random.pick(faultStyles)
  }
  const styles: CallStyle[] = ['json', 'json', 'stream', 'stream', 'number as text']
  if (timeoutMs > 40_000) styles.push('long')
  if (era !== 'modern') styles.push('refused')
  if (era === 'sessions') styles.push('polled', 'polled')
  if (era === 'sessions' && !isModern && !isStateless) styles.push('asks', 'asks')
  return styles.includes(favourite) && random.chance(0.5) ? favourite : random.pick(styles)
}
