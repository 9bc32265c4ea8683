/** The era of each target: found by asking, and remembered for a while, because servers are replaced. */

import { now } from '../../../proxy/upstream/choose.ts'
import { codes, errorCodeOf, requestText } from '../answers.ts'
import { type DiscoverPart, isModernServer, readDiscover } from '../eras/discover.ts'
import { modernVersion } from '../eras/versions.ts'
import { type McpResponse, MessageRefusal, readMessage } from '../message.ts'
import { metaKeys } from '../meta-keys.ts'
import type { Era } from '../methods.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { type TargetFailure, toFailure } from './refusals.ts'
import { modernWire, StreamableTransport } from './streamable.ts'
import { ask, ignored, type OnAbandon } from './transport.ts'

/** How long the era of a target is cached. */
const keptMs = 5 * 60_000

/** The era of a target, and what it reported about itself. */
interface TargetEra {
  readonly era: Era
  /** What a modern server offers. */
  readonly discovered?: DiscoverPart
  /** Has a modern server refused to begin a session? */
  readonly hasNoSessions?: boolean
}

const known = new WeakMap<McpTargetEntry, TargetEra & { readonly until: number }>()

/** Returns the era of the target if it is remembered. */
export function knownEra(entry: McpTargetEntry): TargetEra | undefined {
  const found = known.get(entry)
  return found !== undefined && found.until > now() ? found : undefined
}

/** Called if a response does not fit the era. The next request asks the target again. */
export function forgetEra(entry: McpTargetEntry): void {
  known.delete(entry)
}

const hellos = new WeakMap<McpTargetEntry, McpResponse>()

/** Keeps the response of a legacy server to `initialize`. */
export function noteHello(entry: McpTargetEntry, response: McpResponse): void {
  hellos.set(entry, response)
}

/** Returns the last response of a legacy server to `initialize`. */
export function helloOf(entry: McpTargetEntry): McpResponse | undefined {
  return hellos.get(entry)
}

/** Called if a modern server has refused to begin a session, so that it is not asked for one again soon. */
export function noteNoSessions(entry: McpTargetEntry): void {
  const found = known.get(entry)
  if (found?.era === 'modern') known.set(entry, { ...found, hasNoSessions: true })
}

/** Returns the era of a target. Rejects with a TargetFailure or GatewayError if the target does not report it. */
export async function findEra(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<TargetEra> {
  const found = knownEra(entry) ?? (await probe(exchange, entry, onAbandon))
  known.set(entry, { ...found, until: now() + keptMs })
  return found
}

const legacy: TargetEra = { era: 'legacy' }

async function probe(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<TargetEra> {
  if (entry.target.protocol === 'SSE') return legacy
  const id = '"sluice/discover"'
  const envelope = {
    [metaKeys.version]: modernVersion,
    [metaKeys.clientInfo]: { name: 'sluice', version: exchange.hub.version },
    [metaKeys.capabilities]: {},
  }
  const method = 'server/discover'
  const text = requestText(id, method, JSON.stringify({ _meta: envelope }))
  const transport = new StreamableTransport(exchange, entry, modernWire(modernVersion))
  try {
    const { response } = await ask(transport, { text, id, method }, ignored, onAbandon)
    const part = readDiscover(entry.target.name, response)
    if (part === undefined || !isModernServer(part)) return legacy
    return { era: 'modern', discovered: part }
  } catch (thrown) {
    const failure = toFailure(thrown)
    if (isRefusedByEra(failure)) return legacy
    throw failure
  }
}

/** Returns true if the failure shows that a modern server got a request without an envelope. */
export function isRefusedByModern({ answer }: TargetFailure): boolean {
  if (answer?.status !== 400) return false
  try {
    const message = readMessage(Buffer.from(answer.body).toString())
    return message.kind === 'response' && isErrorOfModern(message)
  } catch (error) {
    if (error instanceof MessageRefusal) return false
    throw error
  }
}

/** Could the error be the response of a modern server to a request without an envelope? */
export function isErrorOfModern({ text, error }: McpResponse): boolean {
  const code = error === undefined ? undefined : errorCodeOf(text)
  return code === codes.unsupportedVersion || code === codes.headerMismatch
}

/**
 * Could the server be of the other era? Servers refuse such requests in many ways. A status that says nothing
 * about the protocol, such as 401 or 503, leaves the era open.
 */
export function isRefusedByEra({ answer }: TargetFailure): boolean {
  if (answer === undefined) return false
  const { status } = answer
  return status >= 400 && status < 500 && ![401, 403, 407, 408, 425, 429].includes(status)
}
