/** Translates what modern clients send for legacy servers, and what those return. */

import {
  type JsonNode,
  jsonValue,
  member,
  membersOf,
  rawOf,
  replace,
  textOf,
} from '../json/node.ts'
import { errorText, requestText, resultText } from '../json-rpc.ts'
import {
  type McpNotification,
  type McpRequest,
  type McpResponse,
  paramsWithMeta,
  withId,
} from '../message.ts'
import { envelopeKeys, metaKeys, roundKeys } from '../meta-keys.ts'
import type { Envelope } from './envelope.ts'
import { readInitializeResult } from './initialize.ts'
import { latestLegacyVersion, modernVersions } from './versions.ts'

/** Returns the `initialize` params for a modern client, as JSON. */
export function initializeParamsOf(text: string, { capabilities, clientInfo }: Envelope): string {
  const info =
    clientInfo === undefined ? '{"name":"sluice","version":"1"}' : rawOf(text, clientInfo)
  const declared = capabilities === undefined ? '{}' : rawOf(text, capabilities)
  return `{"protocolVersion":"${latestLegacyVersion}","capabilities":${declared},"clientInfo":${info}}`
}

/** Ids of a request at the server. Several clients of one principal may share a session. */
export interface LegacyIds {
  /** JSON. */
  readonly id: string
  /** JSON; undefined if the client wants no progress. */
  readonly progressToken: string | undefined
}

/** Returns the request of a modern client without its envelope, and with other ids. */
export function toLegacyRequest(request: McpRequest, { id, progressToken }: LegacyIds): string {
  const { text, params, method } = request
  const meta = membersOf(text, member(params, '_meta'), [...envelopeKeys, 'progressToken'])
  if (progressToken !== undefined) meta.push(`"progressToken":${progressToken}`)
  return requestText(id, method, paramsWithMeta(request, meta, roundKeys))
}

/** Methods whose results have cache hints in the modern era. */
const cacheable = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
])

/** Codes that the modern era does not have: a resource that is not found, and a URL that must be opened. */
const oldCodes = new Set([-32002, -32042])

/** Returns the response for a modern client, with its id. */
export function toModernResponse(response: McpResponse, { id, method }: McpRequest): string {
  const { text, result, error } = response
  if (error !== undefined) {
    const code = member(error, 'code')
    const isOld = code !== undefined && oldCodes.has(jsonValue(text, code) as number)
    if (!isOld) return withId(response, id)
    return errorText(id, -32602, textOf(text, member(error, 'message')) ?? 'Invalid params')
  }
  const hints = cacheable.has(method) ? ['"ttlMs":0', '"cacheScope":"private"'] : []
  const known = ['resultType', ...(hints.length > 0 ? ['ttlMs', 'cacheScope'] : [])]
  const parts = ['"resultType":"complete"', ...hints, ...membersOf(text, result, known)]
  return resultText(id, `{${parts.join(',')}}`)
}

/** Restores the client's progress token. `token` is JSON. */
export function withProgressToken({ text, params }: McpNotification, token: string): string {
  const node = member(params, 'progressToken')
  return node === undefined ? text : replace(text, node, token)
}

/** A request of a server to which the client can respond. */
export interface ServerRequest {
  /** Key in `inputRequests`. */
  readonly key: string
  readonly request: McpRequest
}

/** Returns an `input_required` response. `id` is JSON. */
export function inputRequiredText(
  id: string,
  asked: readonly ServerRequest[],
  state: string,
): string {
  const requests = asked.map(({ key, request: { text, method, params } }) => {
    const own = params === undefined ? '' : `,"params":${rawOf(text, params)}`
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${own}}`
  })
  const result = `"inputRequests":{${requests.join(',')}},"requestState":${JSON.stringify(state)}`
  return resultText(id, `{"resultType":"input_required",${result}}`)
}

/** Returns the client's input by key, as JSON; undefined if the request has none. */
export function inputResponsesIn({
  text,
  params,
}: McpRequest): ReadonlyMap<string, string> | undefined {
  const node = member(params, 'inputResponses')
  if (node?.type !== 'object') return undefined
  return new Map(
    (node.keys ?? []).flatMap((key, at) => {
      const value: JsonNode | undefined = node.values?.[at]
      return value === undefined ? [] : [[key, rawOf(text, value)] as const]
    }),
  )
}

export const requestStateIn = ({ text, params }: McpRequest): string | undefined =>
  textOf(text, member(params, 'requestState'))

/** Returns the response to `server/discover` for a legacy server, from its response to `initialize`. */
export function discoverResponseOf(id: string, initializeResponse: McpResponse): string {
  const { text, result } = initializeResponse
  const { capabilities, instructions } = readInitializeResult(initializeResponse)
  const serverInfo = member(result, 'serverInfo')
  const { tasks: _, ...known } = capabilities
  const discovered = {
    resultType: 'complete',
    supportedVersions: modernVersions,
    capabilities: known,
    ...(instructions !== undefined && { instructions }),
    ttlMs: 0,
    cacheScope: 'private',
    ...(serverInfo && { _meta: { [metaKeys.serverInfo]: jsonValue(text, serverInfo) } }),
  }
  return resultText(id, JSON.stringify(discovered))
}

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

export const isLogLevel = (level: string): boolean => levels.includes(level)

/** Whether the client may get this log message. Without a level it gets none. */
export function isLogged({ text, params }: McpNotification, level: string | undefined): boolean {
  if (level === undefined) return false
  const own = textOf(text, member(params, 'level')) ?? ''
  return levels.indexOf(own) >= levels.indexOf(level)
}
