/** Requests that go to several targets, whose responses are joined. */

import {
  type DiscoverResult,
  mergeDiscoverResults,
  readDiscoverResult,
} from '../../eras/discover.ts'
import { jsonValue, member, replace } from '../../json/node.ts'
import { codes, errorText, resultText } from '../../json-rpc.ts'
import type { ListPart } from '../../lists.ts'
import type { McpRequest, McpResponse } from '../../message.ts'
import type { ListMethod, ProtocolEra } from '../../methods.ts'
import { guardInstructions, guardList } from '../calls/guard-definitions.ts'
import { consentError } from '../exchange/consent.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { cachedList, cacheList } from '../target/cached-lists.ts'
import { type TargetFailure, toFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { OutgoingRequest, ReceivedResponse } from '../target/transport.ts'
import { SessionEnded } from '../upstream/client-session.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { knownFilter, listFilter } from './pinned-items.ts'
import { partOfTarget, responseOf, type TargetList } from './presented-lists.ts'

/** Sends a request to a target. */
export type Send = (entry: McpTargetEntry, request: OutgoingRequest) => Promise<ReceivedResponse>

/** The parts of the targets that responded, in order, and the names of those that failed. */
interface Joined<Part> {
  readonly parts: readonly Part[]
  readonly missing: readonly string[]
  /** Set if a target failed because the user must allow something on a page first. */
  readonly consent: TargetFailure['consent']
}

/**
 * Asks targets at the same time. `read` returns the part of a target, or undefined if its response is an
 * error. Rejects with SessionEnded if no server knows the session.
 */
async function askAll<Part extends object>(
  entries: readonly McpTargetEntry[],
  send: (entry: McpTargetEntry) => Promise<ReceivedResponse>,
  read: (entry: McpTargetEntry, response: McpResponse) => Promise<Part | undefined>,
): Promise<Joined<Part>> {
  let consent: TargetFailure['consent']
  const outcomes = await Promise.all(
    entries.map(async (entry) => {
      try {
        const { response } = await send(entry)
        return await read(entry, response)
      } catch (thrown) {
        if (thrown instanceof SessionEnded) return thrown
        consent ??= toFailure(thrown).consent
        return undefined
      }
    }),
  )
  const ended = outcomes.find((one) => one instanceof SessionEnded)
  const isOver = outcomes.every((one) => one instanceof SessionEnded || one === undefined)
  if (ended !== undefined && isOver) throw ended
  const parts: Part[] = []
  const missing: string[] = []
  for (const [at, { target }] of entries.entries()) {
    const outcome = outcomes[at]
    if (outcome === undefined || outcome instanceof SessionEnded) missing.push(target.name)
    else parts.push(outcome)
  }
  return { parts, missing, consent }
}

function noResponse(
  { id }: McpRequest,
  { missing, consent }: Pick<Joined<object>, 'missing' | 'consent'>,
): string {
  if (consent !== undefined) return consentError(id, consent)
  return errorText(id, codes.internal, `servers could not be asked: ${missing.join(', ')}`)
}

/**
 * Requests a list from every target that may support it or, if the client sent a cursor, from the targets in
 * the cursor. The response names targets that failed, and is an error if all failed.
 */
export async function askLists(
  upstreams: Upstreams,
  send: Send,
  request: McpRequest,
  method: ListMethod,
  cursors: ReadonlyMap<string, string> | undefined,
): Promise<ClientResponse> {
  const asked = upstreams.exchange.backend.targets.filter(({ target }) => {
    if (cursors !== undefined) return cursors.has(target.name)
    return upstreams.can(target.name)?.includes(method.capability) ?? true
  })
  const isPage = cursors !== undefined
  const { identity, principal } = upstreams.exchange
  const client = principal === undefined ? undefined : identity
  const questionOf = ({ target }: McpTargetEntry) => {
    return { method: method.name, cursor: cursors?.get(target.name), client }
  }
  const cached = new Map(
    // Only servers of the modern era say for how long a list is valid.
    (upstreams.era === 'modern' ? asked : []).flatMap((entry) => {
      const found = cachedList(entry, questionOf(entry))
      return found === undefined ? [] : [[entry, found] as const]
    }),
  )
  const joined = await askAll(
    asked.filter((entry) => !cached.has(entry)),
    (entry) => {
      const text = withCursor(request, cursors?.get(entry.target.name))
      return send(entry, { text, id: request.id, method: request.method })
    },
    async (entry, response) => {
      if (upstreams.era === 'modern') cacheList(entry, questionOf(entry), response)
      return listOfTarget(upstreams, method, entry, response, isPage)
    },
  )
  const { parts: fresh, missing } = joined
  const found = cached.size === 0 ? fresh : await inOrder(asked, fresh, cached, upstreams, method)
  const { sessionId, shared, backend } = upstreams.exchange
  if (sessionId !== undefined) {
    for (const name of missing) shared.notices.reportMissing(sessionId, name, method.name)
  }
  if (missing.length > 0 && (found.length === 0 || backend.isFailClosed)) {
    return { text: noResponse(request, joined) }
  }
  // Names may depend on the lists of all targets.
  const parts = found.map((one) => {
    const part = partOfTarget(upstreams.exchange.view, method, one)
    return endRepeatedList(part, cursors?.get(part.target), upstreams.era)
  })
  return responseOf(request, method, parts, missing, upstreams.era)
}

/** Joins lists that were asked for and cached ones, in the order of the targets. */
async function inOrder(
  asked: readonly McpTargetEntry[],
  fresh: readonly TargetList[],
  cached: ReadonlyMap<McpTargetEntry, Pick<TargetList, 'response' | 'hints'>>,
  { exchange }: Upstreams,
  method: ListMethod,
): Promise<readonly TargetList[]> {
  const byEntry = new Map(fresh.map((one) => [one.entry, one]))
  const lists = asked.map(async (entry) => {
    const known = cached.get(entry)
    if (known === undefined) return byEntry.get(entry) ?? []
    const { response, hints } = known
    const keeps = knownFilter(exchange, entry, method, response === undefined ? [] : [response])
    const guarded = response && (await guardList(exchange, entry, method, response))
    return { entry, keeps, ...(hints && { hints }), ...(guarded && { response: guarded }) }
  })
  return (await Promise.all(lists)).flat()
}

/** Resolves to undefined for an error. */
async function listOfTarget(
  { exchange }: Upstreams,
  method: ListMethod,
  entry: McpTargetEntry,
  response: McpResponse,
  isPage: boolean,
): Promise<TargetList | undefined> {
  if (response.error !== undefined) {
    const code = member(response.error, 'code')
    const isUnknown = code && jsonValue(response.text, code) === codes.methodNotFound
    return isUnknown === true ? { entry } : undefined
  }
  const keeps = listFilter(exchange, entry, method, response, isPage)
  return { entry, response: await guardList(exchange, entry, method, response), keeps }
}

/**
 * Ends the list of a server that repeats the cursor it was sent. Earlier revisions do not say what an empty
 * cursor means: servers send it at the end of a list, and clients of these revisions take it for the end.
 */
function endRepeatedList(part: ListPart, sent: string | undefined, era: ProtocolEra): ListPart {
  const isEnd = part.cursor === sent || (part.cursor === '' && era === 'legacy')
  return isEnd ? { ...part, cursor: undefined } : part
}

/** Replaces the client's cursor by the cursor of the target. */
function withCursor({ text, params }: McpRequest, cursor: string | undefined): string {
  const node = member(params, 'cursor')
  if (node === undefined || cursor === undefined) return text
  return replace(text, node, JSON.stringify(cursor))
}

/** Asks every target what it offers, and responds with what they offer together. */
export async function askDiscover(
  { exchange }: Upstreams,
  send: Send,
  request: McpRequest,
): Promise<string> {
  const { backend, shared } = exchange
  const joined = await askAll<DiscoverResult>(
    backend.targets,
    (entry) => send(entry, request),
    async (entry, response) =>
      readDiscoverResult(entry.target.name, await guardInstructions(exchange, entry, response)),
  )
  const { parts, missing } = joined
  if (parts.length === 0 || (missing.length > 0 && backend.isFailClosed)) {
    return noResponse(request, joined)
  }
  return resultText(
    request.id,
    mergeDiscoverResults(parts, missing, shared.version, backend.prefixMode),
  )
}
