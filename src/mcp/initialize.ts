/** Many servers as one: what `initialize` answers. */
import { jsonValue, member, rawOf, textOf } from './json/scan.ts'
import { unavailableMeta } from './lists.ts'
import type { McpResponse } from './message.ts'
import { assumedVersion, knownVersions } from './versions.ts'

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

export interface GatewayHello {
  /** Of the product. */
  readonly version: string
  /** What the client has asked for. */
  readonly asked: string
  /** Names of targets that did not answer. */
  readonly missing: readonly string[]
}

/** The result for several servers, and the version that it settles. */
export function mergeHellos(
  hellos: ReadonlyMap<string, ServerHello>,
  { version, asked, missing }: GatewayHello,
): { readonly version: string; readonly result: string } {
  const all = [...hellos.values()]
  const newest = knownVersions.at(-1) ?? assumedVersion
  const wanted = knownVersions.includes(asked) ? asked : newest
  const [lowest = wanted] = [wanted, ...all.map((one) => one.version)].sort()
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
