/** Compiles the rules of XAccessPolicies to CEL expressions for authorization rules. */
import {
  availabilityProblems,
  compileCel,
  gatewayVariables,
  positionedText,
} from '../../../engines/cel/index.ts'
import { checkRegex } from '../../../engines/core/regex.ts'
import type { AccessRule } from '../../api/access-policy.ts'
import type { Failure } from '../conditions.ts'

type Authorization = NonNullable<AccessRule['authorization']>
type Mcp = NonNullable<Authorization['mcp']>
type McpMethod = NonNullable<Mcp['methods']>[number]

/** The trust domain of ServiceAccounts. */
const trustDomain = 'cluster.local'

interface CompiledRules {
  /** One expression for each rule, which is true for requests that match it. */
  readonly expressions: readonly string[]
  readonly failures: readonly Failure[]
}

/** @param namespace namespace of the policy */
export function compileRules(rules: readonly AccessRule[], namespace: string): CompiledRules {
  const failures: Failure[] = []
  const expressions = rules.map((rule, index) => {
    const path = `spec.rules[${index}].authorization`
    const { authorization } = rule
    if (authorization !== undefined) failures.push(...patternFailures(authorization, path))
    const parts = [
      sourceOf(rule.source, namespace),
      ...(authorization === undefined ? [] : conditionsOf(authorization)),
    ]
    const { cel } = authorization ?? {}
    if (cel !== undefined) {
      const source = translated(cel.expression)
      failures.push(...celFailures(source, `${path}.cel.expression`))
      parts.push(`mcp.method == "tools/call" && (${source}\n)`)
    }
    const needed = parts.filter((part) => part !== undefined)
    return needed.length === 0 ? 'true' : needed.map((part) => `(${part})`).join(' && ')
  })
  return { expressions, failures }
}

/** Returns a text as a CEL string literal. CEL reads the escapes of JSON. */
const quoted = (value: string): string => JSON.stringify(value)

const among = (value: string, values: readonly string[]) =>
  `${value} in [${values.map(quoted).join(', ')}]`

const anyOf = (parts: readonly string[]): string => parts.join(' || ')

/** Returns undefined if every client matches: for no source, and for one without a type and members. */
function sourceOf(source: AccessRule['source'], namespace: string): string | undefined {
  const { type, spiffe, serviceAccount } = source ?? {}
  if (type === 'SPIFFE' || (type === undefined && spiffe !== undefined)) {
    return spiffe === undefined ? 'false' : `source.spiffeId == ${quoted(spiffe)}`
  }
  if (type === 'ServiceAccount' || serviceAccount !== undefined) {
    if (serviceAccount === undefined) return 'false'
    const { name, namespace: of = namespace } = serviceAccount
    const id = `spiffe://${trustDomain}/ns/${of === '' ? namespace : of}/sa/${name}`
    return `source.spiffeId == ${quoted(id)}`
  }
  return undefined
}

function conditionsOf(rule: Authorization): (string | undefined)[] {
  const { methods = [], paths = [], headers = [], hosts = [], ports = [], mcp } = rule
  return [
    methods.length === 0 ? undefined : among('request.method', methods),
    paths.length === 0 ? undefined : anyOf(paths.map(pathCondition)),
    hosts.length === 0 ? undefined : anyOf(hosts.map(hostCondition)),
    ports.length === 0 ? undefined : `destination.port in [${ports.join(', ')}]`,
    ...headers.map(headerCondition),
    mcp && mcpCondition(mcp),
  ]
}

const whole = (pattern: string) => `^(?:${pattern})$`

function pathCondition({ type, value = '' }: NonNullable<Authorization['paths']>[number]): string {
  if (type === 'Exact') return `request.path == ${quoted(value)}`
  if (type === 'RegularExpression') return `request.path.matches(${quoted(whole(value))})`
  const prefix = value.replace(/\/+$/, '')
  if (prefix === '') return 'true'
  return `request.path == ${quoted(prefix)} || request.path.startsWith(${quoted(`${prefix}/`)})`
}

function headerCondition({ type, name, value }: NonNullable<Authorization['headers']>[number]) {
  const field = `request.headers[${quoted(name.toLowerCase())}]`
  return type === 'RegularExpression'
    ? `${field}.matches(${quoted(whole(value))})`
    : `${field} == ${quoted(value)}`
}

/** The host of a request may have a port. */
function hostCondition(host: string): string {
  const isWildcard = host.startsWith('*.')
  const name = (isWildcard ? host.slice(2) : host).replaceAll('.', '\\.')
  const pattern = `(?i)^${isWildcard ? '([^.:]+\\.)+' : ''}${name}(:[0-9]+)?$`
  return `request.host.matches(${quoted(pattern)})`
}

/** Methods that every session needs, in all versions of MCP. */
const baseMethods = ['initialize', 'server/discover', 'subscriptions/listen', 'tools/list', 'ping']
const basePrefixes = ['completion/', 'logging/', 'notifications/']

const baseConditions = [
  // The stream of events, and the end of a session. Messages of an upgraded connection would not be read.
  '(request.method == "GET" && mcp == null)',
  '(request.method == "DELETE" && "mcp-session-id" in request.headers)',
  // A response to a request of the server.
  '(mcp != null && !has(mcp.method))',
  among('mcp.method', baseMethods),
  ...basePrefixes.map((prefix) => `mcp.method.startsWith(${quoted(prefix)})`),
]

function mcpCondition({ methods = [], mcpBaseProtocolMethodsOption: option }: Mcp) {
  const base = option === 'MATCH_BASE_PROTOCOL_METHODS' ? baseConditions : []
  const all = [...base, ...methods.map(methodCondition)]
  return all.length === 0 ? undefined : anyOf(all)
}

function methodCondition({ name, params = [] }: McpMethod): string {
  if (!name.includes('/')) return `mcp.method.startsWith(${quoted(`${name}/`)})`
  const isMethod = `mcp.method == ${quoted(name)}`
  if (params.length === 0) return isMethod
  return `(${isMethod} && ${among(itemOf(name), params)})`
}

function itemOf(method: string): string {
  if (method === 'tools/call') return 'mcp.tool.name'
  return method === 'prompts/get' ? 'mcp.prompt.name' : 'mcp.resource.uri'
}

function patternFailures({ paths = [], headers = [] }: Authorization, at: string): Failure[] {
  return Object.entries({ paths, headers }).flatMap(([field, matches]) =>
    matches.flatMap(({ type, value = '' }, index) => {
      if (type !== 'RegularExpression') return []
      const checked = checkRegex(value)
      if (checked.ok) return []
      return [{ reason: 'Invalid', message: `${at}.${field}[${index}].value: ${checked.message}` }]
    }),
  )
}

function celFailures(source: string, at: string): Failure[] {
  const compiled = compileCel(source, { variables: gatewayVariables })
  const problems = compiled.ok ? availabilityProblems(source, 'mcpItem') : compiled.problems
  return problems.map((problem) => ({
    reason: 'InvalidCEL',
    message: `${at}: ${positionedText(problem)}`,
  }))
}

/** Variables of kube-agentic-networking, and those of this gateway, whose `request.path` has no query. */
const names: Readonly<Record<string, string>> = {
  'request.mcp.tool_name': 'mcp.tool.name',
  'request.url_path': 'request.path',
  'request.path': 'request.pathAndQuery',
  'request.time': 'request.startTime',
}

/** Matches string literals, which stay unchanged, and the names above. */
const tokens =
  /[rR](?:"[^"]*"|'[^']*')|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\brequest\.(?:mcp\.tool_name|url_path|path|time)\b/gs

const translated = (expression: string): string =>
  expression.replace(tokens, (token) => names[token] ?? token)
