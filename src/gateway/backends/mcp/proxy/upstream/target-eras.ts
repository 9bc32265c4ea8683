/** The era of each target: found by asking, and remembered for a while, because servers are replaced. */

import { now } from '../../../../proxy/upstream/choose.ts'
import { type DiscoverResult, isModernServer, readDiscover } from '../../eras/discover.ts'
import { modernVersion } from '../../eras/versions.ts'
import { type McpResponse, MessageRefusal, readMessage } from '../../message.ts'
import { metaKeys } from '../../meta-keys.ts'
import type { ProtocolEra } from '../../methods.ts'
import { codes, errorCodeOf, requestText } from '../../responses.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { type HttpErrorResponse, type TargetFailure, toFailure } from '../target/refusals.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { ask, ignored, type OnAbandon } from '../target/transport.ts'
import { modernWire, StreamableTransport } from '../transport/streamable.ts'

/** How long the era of a target is cached. */
const keptMs = 5 * 60_000

/** How long a server may take to say of which era it is. A server that says nothing is legacy. */
const probeMs = 5_000

interface TargetEra {
  readonly era: ProtocolEra
  /** Has a modern server refused to begin a session? */
  readonly hasNoSessions?: boolean
}

interface Known {
  readonly era: TargetEra
  readonly until: number
}

/** What is known of a target, for all clients. What it has told one client is not shared with another. */
const known = new WeakMap<McpTargetEntry, Known>()

/** Returns the era of the target if it is remembered. */
export function knownEra(entry: McpTargetEntry): TargetEra | undefined {
  const found = known.get(entry)
  return found !== undefined && found.until > now() ? found.era : undefined
}

/** Called if a response does not fit the era. The next request asks the target again. */
export function forgetEra(entry: McpTargetEntry): void {
  known.delete(entry)
}

/** Called if a modern server has refused to begin a session, so that it is not asked for one again soon. */
export function noteNoSessions(entry: McpTargetEntry): void {
  const found = known.get(entry)
  if (found?.era.era !== 'modern') return
  known.set(entry, { ...found, era: { ...found.era, hasNoSessions: true } })
}

/** Did the target give a session id when a session was begun last? */
const sessions = new WeakMap<McpTargetEntry, { readonly has: boolean; readonly until: number }>()

/** Keeps whether a legacy server has given a session id. */
export function noteSessions(entry: McpTargetEntry, has: boolean): void {
  sessions.set(entry, { has, until: now() + keptMs })
}

/** Do clients have sessions at the legacy server? Undefined if that is not known. */
export function hasSessions(entry: McpTargetEntry): boolean | undefined {
  if (entry.target.protocol === 'SSE') return true
  const found = sessions.get(entry)
  return found !== undefined && found.until > now() ? found.has : undefined
}

/** Did the server have sessions when it was asked last, however long ago? */
export const hadSessions = (entry: McpTargetEntry): boolean => sessions.get(entry)?.has === true

/** What modern servers have told each client about themselves. */
const discovered = new WeakMap<
  McpTargetEntry,
  Map<string, { readonly part: DiscoverResult; readonly until: number }>
>()
/** Maximum number of clients of a target for which that is kept. */
const maxClients = 256

/** Returns what a modern server offers this client, if it has told. */
export function knownOffer(
  { identity }: Pick<McpExchange, 'identity'>,
  entry: McpTargetEntry,
): DiscoverResult | undefined {
  const found = discovered.get(entry)?.get(identity)
  return found !== undefined && found.until > now() ? found.part : undefined
}

function keepOffer({ identity }: McpExchange, entry: McpTargetEntry, part: DiscoverResult): void {
  const all = discovered.get(entry) ?? new Map()
  const [oldest] = all.size >= maxClients ? all.keys() : []
  if (oldest !== undefined) all.delete(oldest)
  discovered.set(entry, all.set(identity, { part, until: now() + keptMs }))
}

/** Returns the era of a target. Rejects with a TargetFailure or GatewayError if the target does not report it. */
export async function findEra(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<TargetEra> {
  const found = knownEra(entry)
  if (found !== undefined) return found
  if (entry.target.protocol === 'SSE') return legacy
  const part = await discover(exchange, entry, onAbandon)
  const era: TargetEra = part === undefined ? legacy : { era: 'modern' }
  known.set(entry, { era, until: now() + keptMs })
  return era
}

/** Returns what a modern server offers this client; undefined if the server is legacy. Rejects as `findEra`. */
export async function findOffer(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<DiscoverResult | undefined> {
  if ((await findEra(exchange, entry, onAbandon)).era === 'legacy') return undefined
  const found = knownOffer(exchange, entry)
  if (found !== undefined) return found
  const part = await discover(exchange, entry, onAbandon)
  if (part === undefined) forgetEra(entry)
  return part
}

const legacy: TargetEra = { era: 'legacy' }

/** Asks a server what it offers. Resolves to undefined if it is not modern. */
async function discover(
  exchange: McpExchange,
  entry: McpTargetEntry,
  onAbandon: OnAbandon,
): Promise<DiscoverResult | undefined> {
  const id = '"sluice/discover"'
  const envelope = {
    [metaKeys.version]: modernVersion,
    [metaKeys.clientInfo]: { name: 'sluice', version: exchange.shared.version },
    [metaKeys.capabilities]: {},
  }
  const method = 'server/discover'
  const text = requestText(id, method, JSON.stringify({ _meta: envelope }))
  const transport = new StreamableTransport(exchange, entry, modernWire(modernVersion))
  try {
    const { response } = await ask(transport, { text, id, method }, ignored, onAbandon, probeMs)
    const part = readDiscover(entry.target.name, response)
    if (part === undefined || !isModernServer(part)) return undefined
    keepOffer(exchange, entry, part)
    return part
  } catch (thrown) {
    const failure = toFailure(thrown)
    if (isRefusedByEra(failure) || failure.hasTimedOut) return undefined
    throw failure
  }
}

/** Returns true if the refusal shows that a modern server got a request without an envelope. */
export function isRefusedByModern(httpResponse: HttpErrorResponse | undefined): boolean {
  if (httpResponse?.status !== 400) return false
  try {
    const message = readMessage(Buffer.from(httpResponse.body).toString())
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
export function isRefusedByEra({ httpResponse }: TargetFailure): boolean {
  if (httpResponse === undefined) return false
  const { status } = httpResponse
  return status >= 400 && status < 500 && ![401, 403, 407, 408, 425, 429].includes(status)
}
