/** Translates what legacy clients send for modern servers, and what those return. */

import { isObject } from '../../../../ground/base/json-object.ts'
import { member, membersOf, rawOf, textOf } from '../json/node.ts'
import { requestText, resultText } from '../json-rpc.ts'
import { type McpRequest, type McpResponse, paramsWithMeta } from '../message.ts'
import { envelopeKeys, metaKeys, roundKeys } from '../meta-keys.ts'
import type { DiscoverResult } from './discover.ts'
import { capabilitiesIn } from './server-requests.ts'
import { modernVersion } from './versions.ts'

/** Returns the members of an envelope for a client. `initializeParams`: JSON of its `initialize` params. */
function envelopeText(initializeParams: string, logLevel: string | undefined): string {
  const params: unknown = JSON.parse(initializeParams)
  const clientInfo = isObject(params) ? params.clientInfo : undefined
  const envelope = JSON.stringify({
    [metaKeys.version]: modernVersion,
    ...(isObject(clientInfo) && { [metaKeys.clientInfo]: clientInfo }),
    [metaKeys.capabilities]: capabilitiesIn(initializeParams) ?? {},
    ...(logLevel !== undefined && { [metaKeys.logLevel]: logLevel }),
  })
  return envelope.slice(1, -1)
}

/** What a retry of a request adds to its params. */
export interface RetryInput {
  readonly responses: Readonly<Record<string, unknown>>
  /** JSON of the server's state. */
  readonly state: string | undefined
}

/** Returns the request of a legacy client with an envelope, and with the id `id`. */
export function toModernRequest(
  request: McpRequest,
  id: string,
  initializeParams: string,
  logLevel: string | undefined,
  round?: RetryInput,
): string {
  const { text, params, method } = request
  const others = membersOf(text, member(params, '_meta'), envelopeKeys)
  const meta = [envelopeText(initializeParams, logLevel), ...others]
  const input: string[] = []
  if (round !== undefined) input.push(`"inputResponses":${JSON.stringify(round.responses)}`)
  if (round?.state !== undefined) input.push(`"requestState":${round.state}`)
  return requestText(id, method, paramsWithMeta(request, meta, roundKeys, input))
}

/** A request of a server in an `input_required` result. */
interface InputRequest {
  readonly key: string
  readonly method: string
  /** JSON. */
  readonly params: string
}

export interface InputRequired {
  readonly requests: readonly InputRequest[]
  /** JSON of the server's state. */
  readonly state: string | undefined
}

/** Returns what a server needs to go on; undefined if the result is complete. */
export function inputRequired({ text, result }: McpResponse): InputRequired | undefined {
  if (textOf(text, member(result, 'resultType')) !== 'input_required') return undefined
  const asked = member(result, 'inputRequests')
  const state = member(result, 'requestState')
  return {
    requests: (asked?.keys ?? []).flatMap((key, at) => {
      const node = asked?.values?.[at]
      const params = member(node, 'params')
      const method = textOf(text, member(node, 'method'))
      if (method === undefined) return []
      return [{ key, method, params: params === undefined ? '{}' : rawOf(text, params) }]
    }),
    state: state && rawOf(text, state),
  }
}

/** Returns the response to `initialize` of a client whose server has no sessions. */
export function initializeResponseOf(id: string, version: string, server: DiscoverResult): string {
  const { capabilities, instructions, serverInfo } = server
  const { extensions: _, ...known } = capabilities
  const result = {
    protocolVersion: version,
    capabilities: known,
    serverInfo: isObject(serverInfo) ? serverInfo : { name: server.target, version: '' },
    ...(instructions !== undefined && { instructions }),
  }
  return resultText(id, JSON.stringify(result))
}

/** Returns the `params` of a request that the server sends, as earlier versions define them. */
export function legacyParams({ method, params }: InputRequest, id: string): string {
  if (method !== 'elicitation/create') return params
  const value: unknown = JSON.parse(params)
  // Versions before 2026-07-28 need an id to report the end of what happens at the URL.
  if (!isObject(value) || value.mode !== 'url' || value.elicitationId !== undefined) return params
  return JSON.stringify({ ...value, elicitationId: id })
}
