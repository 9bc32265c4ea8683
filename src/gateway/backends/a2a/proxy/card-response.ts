/** Agent cards in responses: checked, recorded, and rewritten so that clients come through the gateway. */
import { parseJson } from '../../../../engines/json/parse.ts'
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'
import {
  type BufferedBody,
  type RespondVerdict,
  refuse,
} from '../../../../ground/exchange/exchange.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import { clientOrigin, sentPath } from '../../../proxy/request/client-origin.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { a2aStepOf } from '../policy/apply.ts'
import { isCard, rewriteCard } from '../protocol/card.ts'
import type { A2aBackend } from './backend.ts'
import type { A2aRecord } from './record.ts'

/** A request for a card. */
export interface CardCall {
  readonly context: RequestContext
  readonly runtime: GatewayRuntime
  readonly backend: A2aBackend
  readonly access: BackendAccess
  /** Name of the backend, as `namespace/name`. */
  readonly name: string
  /** Path that the agent got. */
  readonly agentPath: string
  readonly record: A2aRecord | undefined
}

/** Maximum size of a card in bytes. */
export const maxCard = 1024 * 1024

/** Headers of the agent's response that describe its bytes, or how long they may be kept. */
const droppedHeaders: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'etag',
  'last-modified',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
])

/** Returns the response for the client; undefined if the response has no card, such as an error. */
export async function receiveCard(
  call: CardCall,
  body: BufferedBody,
): Promise<RespondVerdict | undefined> {
  if (!body.complete) return refuseCard(call, 'the card of the agent is too large')
  const parsed = parseJson(Buffer.from(body.bytes).toString())
  const isRpc = call.record?.request.binding === 'JSONRPC'
  if (isRpc && isObject(parsed) && 'error' in parsed && !('result' in parsed)) {
    return respond(call, parsed)
  }
  const card = isRpc ? (parsed as JsonObject | undefined)?.result : parsed
  if (!isCard(card)) return refuseCard(call, 'the response of the agent is not a card')
  const problem = await check(call, card)
  if (problem !== undefined) return refuseCard(call, problem)
  const rewritten = rewriteCard(card, {
    origin: clientOrigin(call.context, call.runtime),
    clientPath: sentPath(call.context),
    agentPath: call.agentPath,
    agent: call.backend.authority,
  })
  if (rewritten === undefined) {
    return refuseCard(call, 'the card has no address that clients can reach through this route')
  }
  if (call.record?.card !== undefined) {
    call.record.card = { ...call.record.card, dropped: rewritten.dropped }
  }
  return respond(
    call,
    isRpc ? { ...(parsed as JsonObject), result: rewritten.card } : rewritten.card,
  )
}

/** Returns the reason for which clients must not get the card; undefined if they may. */
async function check(call: CardCall, card: JsonObject): Promise<string | undefined> {
  const { record, backend, context } = call
  const target = call.record?.request.method === 'GetAgentCard' ? 'agent' : 'agent-extended'
  const digest = backend.see(call.name, target, card, call.runtime)
  const { verifier } = a2aStepOf(call.access.policies) ?? {}
  const signature = verifier === undefined ? 'unchecked' : await verifier.check(card)
  if (record !== undefined) record.card = { digest, signature, dropped: [] }
  addNote(context.exchange, 'backend.a2a', `card ${digest.slice(0, 12)}: signature ${signature}`)
  if (verifier !== undefined && signature !== 'valid') {
    return `the card is ${signature === 'unsigned' ? 'not signed' : 'not signed with a configured key'}`
  }
  return backend.isApproved(target, digest) ? undefined : 'this version of the card is not approved'
}

function refuseCard(call: CardCall, text: string): RespondVerdict {
  const step = a2aStepOf(call.access.policies)
  addNote(call.context.exchange, 'backend.a2a', text, { step, isResponse: true })
  return refuse(502, 'UpstreamFailure', text, text)
}

function respond({ context }: CardCall, value: JsonObject): RespondVerdict {
  const headers = [...(context.exchange.response?.headers.entries() ?? [])].filter(
    ([name]) => !droppedHeaders.has(name.toLowerCase()),
  )
  return { kind: 'respond', status: 200, headers, body: JSON.stringify(value), reason: 'Upstream' }
}
