/** `initialize` of several servers, joined into one response. */
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'
import type { McpPrefixMode } from '../../../../ground/model/mcp-targets.ts'
import { jsonValue, member, rawOf, replace, textOf } from '../json/node.ts'
import { unavailableMeta } from '../lists.ts'
import { type McpRequest, type McpResponse, readMessage } from '../message.ts'
import { assumedVersion, legacyVersions, versionFor } from './versions.ts'

/** The members of the `initialize` response of one server that the gateway uses. */
export interface InitializeResult {
  readonly version: string
  /** Capabilities as declared by the server. */
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
}

export function readInitializeResult({ text, result }: McpResponse): InitializeResult {
  const capabilities = member(result, 'capabilities')
  const value = capabilities?.type === 'object' ? jsonValue(text, capabilities) : {}
  return {
    version: textOf(text, member(result, 'protocolVersion')) ?? assumedVersion,
    capabilities: value as Record<string, unknown>,
    instructions: textOf(text, member(result, 'instructions')),
  }
}

/** Members of `clientInfo` that only decorate, and can be so large that no header has room for them. */
const decorations = ['icons', 'description', 'websiteUrl']

/** Returns the client's params as JSON, for servers that are initialized later, without decorations. */
export function keptParams(text: string, params: Parameters<typeof rawOf>[1] | undefined): string {
  if (params === undefined) return '{}'
  const info = member(params, 'clientInfo')
  const value = info?.type === 'object' ? jsonValue(text, info) : undefined
  if (info === undefined || !isObject(value)) return rawOf(text, params)
  const kept = Object.entries(value).filter(([name]) => !decorations.includes(name))
  const slim = JSON.stringify(Object.fromEntries(kept))
  return text.slice(params.start, info.start) + slim + text.slice(info.end, params.end)
}

/** Returns the version that the client requests, if any. */
export function requestedVersion({ text, params }: McpRequest): string | undefined {
  return textOf(text, member(params, 'protocolVersion'))
}

/**
 * Replaces an unknown protocol version in a request. Many servers would accept it, but the gateway could not
 * serve it.
 */
export function withKnownVersion(request: McpRequest): McpRequest {
  const asked = requestedVersion(request)
  const version = versionFor(asked)
  const node = member(request.params, 'protocolVersion')
  if (asked === undefined || asked === version || node === undefined) return request
  const changed = readMessage(replace(request.text, node, JSON.stringify(version)))
  return changed.kind === 'request' ? changed : request
}

/**
 * Returns the response of the only server. If its version is unknown to the gateway, `version` replaces it.
 */
export function inSupportedVersion({ text, result }: McpResponse, version: string): string {
  const node = member(result, 'protocolVersion')
  const stated = textOf(text, node)
  if (node === undefined || stated === undefined || legacyVersions.includes(stated)) return text
  return replace(text, node, JSON.stringify(version))
}

/** Whether a part of the capabilities has the flag. */
export function hasFlag(capabilities: JsonObject, name: string, flag: string): boolean {
  const part = capabilities[name]
  return isObject(part) && part[flag] === true
}

/** MCP Apps. It is the only extension that the gateway declares for several servers. */
const appsExtension = 'io.modelcontextprotocol/ui'

/**
 * Merges the capabilities of all servers. List changes are always declared, because targets are added and
 * removed. Tasks are left out, because they belong to one server.
 */
export function mergeCapabilities(
  all: readonly Pick<InitializeResult, 'capabilities'>[],
): JsonObject {
  const has = (name: string) => all.some(({ capabilities }) => isObject(capabilities[name]))
  const subscribes = all.some(({ capabilities }) => hasFlag(capabilities, 'resources', 'subscribe'))
  const experimental = all.flatMap(({ capabilities }) =>
    isObject(capabilities.experimental) ? Object.entries(capabilities.experimental) : [],
  )
  const apps = all.flatMap(({ capabilities: { extensions } }) =>
    isObject(extensions) && isObject(extensions[appsExtension]) ? [extensions[appsExtension]] : [],
  )
  return {
    ...(has('tools') && { tools: { listChanged: true } }),
    ...(has('prompts') && { prompts: { listChanged: true } }),
    ...(has('resources') && {
      resources: { listChanged: true, ...(subscribes && { subscribe: true }) },
    }),
    ...(has('logging') && { logging: {} }),
    ...(has('completions') && { completions: {} }),
    ...(experimental.length > 0 && { experimental: Object.fromEntries(experimental) }),
    ...(apps.length > 0 && { extensions: { [appsExtension]: Object.assign({}, ...apps) } }),
  }
}

/** The form of names if there are several servers. */
const namesOf: Readonly<Record<McpPrefixMode, string>> = {
  Always: 'names of tools and prompts begin with the name of their server and "_", URIs',
  Conditional:
    'names of tools and prompts that several servers have begin with the name of their server and "_", URIs',
  Never: 'URIs',
}

/** Joins the instructions of all servers, and explains their names. */
export function joinInstructions(
  servers: Iterable<readonly [target: string, server: Pick<InitializeResult, 'instructions'>]>,
  mode: McpPrefixMode,
): string {
  const several = `Several servers answer here: ${namesOf[mode]} of resources ${mode === 'Never' ? 'begin with the name of their server' : 'with it'} and "+", which follow "ui://" if the URI begins with that.`
  const own = [...servers].flatMap(([target, { instructions }]) =>
    instructions === undefined || instructions === '' ? [] : [`[${target}]\n${instructions}`],
  )
  return [several, ...own].join('\n\n')
}

interface GatewayInitialize {
  /** Version of the gateway software. */
  readonly version: string
  /** The protocol version that the client requests, or the latest one if that is unknown. */
  readonly wanted: string
  /** Names of targets that did not respond. */
  readonly missing: readonly string[]
  readonly prefixMode: McpPrefixMode
}

/** Returns the `initialize` result for several servers, and the protocol version in it. */
export function mergeInitializeResults(
  results: ReadonlyMap<string, InitializeResult>,
  { version, wanted, missing, prefixMode }: GatewayInitialize,
): { readonly version: string; readonly result: string } {
  const all = [...results.values()]
  const known = all.map((one) => one.version).filter((one) => legacyVersions.includes(one))
  const [lowest = wanted] = [wanted, ...known].sort()
  const result = JSON.stringify({
    protocolVersion: lowest,
    capabilities: mergeCapabilities(all),
    serverInfo: { name: 'sluice', version },
    instructions: joinInstructions(results, prefixMode),
  })
  const meta = missing.length === 0 ? '' : `,"_meta":${unavailableMeta(missing)}`
  return { version: lowest, result: `${result.slice(0, -1)}${meta}}` }
}
