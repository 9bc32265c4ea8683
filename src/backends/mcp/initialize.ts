/** Many servers as one: what `initialize` answers. */
import { jsonValue, member, rawOf, splice, textOf } from './json/scan.ts'
import { unavailableMeta } from './lists.ts'
import { type McpRequest, type McpResponse, readMessage } from './message.ts'
import { assumedVersion, knownVersions, versionFor } from './versions.ts'

/** What the gateway needs to know of the answer of one server. */
export interface ServerHello {
  readonly version: string
  /** As the server wrote them. */
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
}

export function readHello({ text, result }: McpResponse): ServerHello {
  const capabilities = member(result, 'capabilities')
  const value = capabilities?.type === 'object' ? jsonValue(text, capabilities) : {}
  return {
    version: textOf(text, member(result, 'protocolVersion')) ?? assumedVersion,
    capabilities: value as Record<string, unknown>,
    instructions: textOf(text, member(result, 'instructions')),
  }
}

/** JSON of the params that a client has sent, for servers that are to hear them later. */
export function helloParams(text: string, params: Parameters<typeof rawOf>[1] | undefined): string {
  return params === undefined ? '{}' : rawOf(text, params)
}

/** The version that a client asks for; undefined if it names none. */
export function askedVersion({ text, params }: McpRequest): string | undefined {
  return textOf(text, member(params, 'protocolVersion'))
}

/**
 * The request with a version that the gateway knows. Many servers accept whatever they are asked for,
 * and the gateway would then refuse every message of the session.
 */
export function inKnownVersion(request: McpRequest): McpRequest {
  const asked = askedVersion(request)
  const version = versionFor(asked)
  const node = member(request.params, 'protocolVersion')
  if (asked === undefined || asked === version || node === undefined) return request
  const { start, end } = node
  const changed = readMessage(splice(request.text, [{ start, end, text: JSON.stringify(version) }]))
  return changed.kind === 'request' ? changed : request
}

/** The answer of the only server; a version that the gateway does not know becomes `version`. */
export function helloInVersion({ text, result }: McpResponse, version: string): string {
  const node = member(result, 'protocolVersion')
  const stated = textOf(text, node)
  if (node === undefined || stated === undefined || knownVersions.includes(stated)) return text
  return splice(text, [{ start: node.start, end: node.end, text: JSON.stringify(version) }])
}

type Part = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * A server is heard where it has something: what one can do, all together can. Lists may change, as
 * targets come and go. Tasks are of one server each, and are not passed on among several.
 */
function mergeCapabilities(all: readonly ServerHello[]): Part {
  const has = (name: string) => all.some(({ capabilities }) => isRecord(capabilities[name]))
  const flag = (name: string, key: string) =>
    all.some(({ capabilities }) => {
      const part = capabilities[name]
      return isRecord(part) && part[key] === true
    })
  const experimental = all.flatMap(({ capabilities }) =>
    isRecord(capabilities.experimental) ? Object.entries(capabilities.experimental) : [],
  )
  return {
    ...(has('tools') && { tools: { listChanged: true } }),
    ...(has('prompts') && { prompts: { listChanged: true } }),
    ...(has('resources') && {
      resources: { listChanged: true, ...(flag('resources', 'subscribe') && { subscribe: true }) },
    }),
    ...(has('logging') && { logging: {} }),
    ...(has('completions') && { completions: {} }),
    ...(experimental.length > 0 && { experimental: Object.fromEntries(experimental) }),
  }
}

interface GatewayHello {
  /** Of the product. */
  readonly version: string
  /** What the client has asked for, or the latest version if that is unknown. */
  readonly wanted: string
  /** Names of targets that did not answer. */
  readonly missing: readonly string[]
}

/** The result for several servers, and the version that it settles. */
export function mergeHellos(
  hellos: ReadonlyMap<string, ServerHello>,
  { version, wanted, missing }: GatewayHello,
): { readonly version: string; readonly result: string } {
  const all = [...hellos.values()]
  const known = all.map((one) => one.version).filter((one) => knownVersions.includes(one))
  const [lowest = wanted] = [wanted, ...known].sort()
  const instructions = [...hellos].flatMap(([target, hello]) =>
    hello.instructions === undefined || hello.instructions === ''
      ? []
      : [`[${target}]\n${hello.instructions}`],
  )
  const several =
    'Several servers answer here: names of tools and prompts begin with the name of their server and "_", URIs of resources with it and "+".'
  const result = JSON.stringify({
    protocolVersion: lowest,
    capabilities: mergeCapabilities(all),
    serverInfo: { name: 'sluice', version },
    instructions: [several, ...instructions].join('\n\n'),
  })
  const meta = missing.length === 0 ? '' : `,"_meta":${unavailableMeta(missing)}`
  return { version: lowest, result: `${result.slice(0, -1)}${meta}}` }
}
