/** MCP servers of the configuration, and who may see their tools. */

import {
  type CelResult,
  compileCel,
  gatewayVariables,
  isCelError,
} from '../../src/engines/cel/index.ts'
import type { BackendMcpConfig } from '../../src/gateway/backends/mcp/policy/config.ts'
import type { AuthorizationConfig } from '../../src/gateway/policies/authorization/rules.ts'
import {
  type BackendPlace,
  backendLevels,
  type Levels,
  ruleLevels,
} from '../../src/gateway/policies/merge.ts'
import type { McpTarget } from '../../src/ground/model/mcp-targets.ts'
import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import type { BackendResource, Resource } from '../../src/ground/model/resources.ts'
import {
  fieldsAt,
  type PolicyContext,
  policiesByTarget,
} from '../../src/past/explain/effective-policies.ts'
import type { Moment } from '../log/loaded-log.ts'

interface TargetRow {
  /** `namespace/name` of the backend, and its key. */
  readonly backend: string
  readonly object: ObjectKey
  readonly target: string
  readonly server: string
  readonly protocol: string
}

interface McpParams {
  /** Tools as series name them: the backend, a space, and the name of the tool. */
  readonly tools: readonly string[]
}

export function mcpModel(moment: Moment, { tools }: McpParams) {
  const resources = [...moment.resources.entries()].map(([, one]) => one)
  const all = resources.map(({ resource }) => resource)
  const context = { policies: policiesByTarget(resources), originOf: () => undefined }
  const backends = all.filter((one): one is McpBackend => {
    return one.type === 'backend' && one.destination.type === 'mcp'
  })
  const seenBy = tools.map((tool) => {
    const at = tool.indexOf(' ')
    const backend = backends.find(
      ({ namespace, name }) => `${namespace}/${name}` === tool.slice(0, at),
    )
    if (backend === undefined) return [tool, 'no such backend now'] as const
    const ways = waysTo(backend, all)
    const texts = backend.destination.targets.flatMap((target) =>
      ways.map((way) =>
        visibility(rulesOf(context, backend, target, way), tool.slice(at + 1), target),
      ),
    )
    return [tool, [...new Set(texts)].join('; or ')] as const
  })
  return { targets: backends.flatMap(targetRows), seenBy: Object.fromEntries(seenBy) }
}

type McpBackend = BackendResource & {
  readonly destination: Extract<BackendResource['destination'], { readonly type: 'mcp' }>
}

const targetRows = ({ namespace, name, destination }: McpBackend): TargetRow[] =>
  destination.targets.map((target) => ({
    backend: `${namespace}/${name}`,
    object: objectKey({ kind: 'GatewayBackend', namespace, name }),
    target: target.name,
    server: `${hostOf(target.destination)}${target.path}`,
    protocol: target.protocol,
  }))

const hostOf = (to: McpTarget['destination']): string =>
  to.type === 'static' ? `${to.host}:${to.port}` : `Service ${to.namespace}/${to.name}:${to.port}`

/** The levels of policies above a backend: one for each rule and listener that lead to it. */
function waysTo({ namespace, name }: McpBackend, all: readonly Resource[]): Levels[] {
  const ways = all.flatMap((rule) => {
    if (rule.type !== 'route') return []
    const leads = rule.backends.some(
      ({ target }) =>
        target.type === 'backend' && target.namespace === namespace && target.name === name,
    )
    return !leads
      ? []
      : rule.attachments.flatMap(({ listener: key }) => {
          const listener = all.find((one) => one.type === 'listener' && one.key === key)
          if (listener?.type !== 'listener') return []
          const { owner, section, port } = listener
          const gateway = { kind: 'Gateway', ...listener.gateway }
          return [ruleLevels({ gateway, owner, section, port }, rule)]
        })
  })
  return ways.length === 0 ? [[]] : ways
}

/** The rules for the items of a target, on one way to its backend. */
function rulesOf(
  context: PolicyContext,
  { namespace, name }: McpBackend,
  { sections, destination }: McpTarget,
  way: Levels,
): AuthorizationConfig[] {
  const backend = { backend: { kind: 'GatewayBackend', namespace, name }, sections }
  const behind: BackendPlace | undefined =
    destination.type === 'static'
      ? undefined
      : {
          backend: { kind: 'Service', namespace: destination.namespace, name: destination.name },
          sections: [`${destination.port}`],
        }
  const fields = fieldsAt(context, 'backend', 'PostRouting', backendLevels(way, backend, behind))
  return fields
    .filter(({ field }) => field === 'mcp')
    .flatMap(({ policies }) => policies)
    .flatMap(({ state, config }) => {
      const { authorization } = config as BackendMcpConfig
      return state === 'in force' && authorization !== undefined ? [authorization] : []
    })
}

/** The value of an expression for a tool; undefined if it depends on who asks. */
function valueFor(source: string, tool: string, target: string): CelResult | undefined {
  const compiled = compileCel(source, { variables: gatewayVariables })
  if (!compiled.ok) return undefined
  let needsCaller = false
  const mcp = { target, tool: { name: tool, target } }
  const value = compiled.value.evaluate({
    lookup: (name) => {
      if (name === 'mcp') return mcp
      needsCaller = true
      return undefined
    },
  })
  const isMissing = isCelError(value) && value.kind === 'missing'
  return needsCaller || isMissing ? undefined : value
}

/** Whether a rule matches for every caller. A Deny expression that fails counts as matching. */
const decides = (action: AuthorizationConfig['action'], value: CelResult | undefined): boolean =>
  action === 'Deny' ? value !== undefined && value !== false && value !== null : value === true

/** Who may see a tool: everyone, no one, or those for whom expressions are true. */
function visibility(
  rules: readonly AuthorizationConfig[],
  tool: string,
  { name: target }: McpTarget,
): string {
  const judged = rules.map(({ action, expressions }) => {
    const values = expressions.map((source) => [source, valueFor(source, tool, target)] as const)
    const certain = values.find(([, value]) => decides(action, value))?.[0]
    const open = values.filter(([, value]) => value === undefined).map(([source]) => source)
    return { action, certain, open: open.join(' || ') }
  })
  const of = (action: AuthorizationConfig['action']) =>
    judged.filter((rule) => rule.action === action)
  const denied = of('Deny').find(({ certain }) => certain !== undefined)
  if (denied !== undefined) return `no one (Deny ${denied.certain})`
  const required = of('Require').filter(({ certain }) => certain === undefined)
  const allowed = of('Allow')
  const isAllowed = allowed.length === 0 || allowed.some(({ certain }) => certain !== undefined)
  const open = allowed.map((rule) => rule.open).filter((text) => text !== '')
  if (required.some((rule) => rule.open === '') || (!isAllowed && open.length === 0)) {
    return 'no one (no rule allows it)'
  }
  const conditions = [
    ...required.map((rule) => rule.open),
    ...(isAllowed ? [] : [open.join(' || ')]),
    ...of('Deny').flatMap((rule) => (rule.open === '' ? [] : [`not (${rule.open})`])),
  ]
  return conditions.length === 0 ? 'everyone' : `if ${conditions.join(' and ')}`
}
