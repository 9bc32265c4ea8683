/** Lists that targets allow to be cached (revision 2026-07-28), so that they need not be asked for each client. */
import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import { type CacheHints, hintsOf } from '../../lists.ts'
import type { McpResponse } from '../../message.ts'
import { type McpTargetEntry, TargetMemory } from './targets.ts'

interface CachedList {
  readonly response: McpResponse
  /** Monotonic time at which the list was received. */
  readonly receivedAt: number
  readonly hints: CacheHints
}

/** Maximum time for which a list is used, whatever the server allows. */
const maxMs = 60_000
/** Maximum number of lists and pages of a target, for all clients. */
const maxLists = 64
/** Maximum length of a response that is cached. */
const maxLength = 4_194_304

interface Memory {
  lists: BoundedMap<string, CachedList>
}

const memory = new TargetMemory<Memory>(() => ({ lists: new BoundedMap(maxLists) }))

/** The page of a list that a client requests. */
interface ListQuestion {
  readonly method: string
  readonly cursor: string | undefined
  /** Identifies the client to the server; undefined if nothing verified does, so that it gets only public lists. */
  readonly client: string | undefined
}

const keyOf = ({ method, cursor }: ListQuestion, client: string): string =>
  JSON.stringify([method, cursor, client])

/** Returns the list with the time for which it is still valid; undefined if the target must be asked. */
export function cachedList(
  entry: McpTargetEntry,
  question: ListQuestion,
): Pick<CachedList, 'response' | 'hints'> | undefined {
  const { lists } = memory.of(entry)
  if (lists.size === 0) return undefined
  const { client = '' } = question
  const found = lists.get(keyOf(question, '')) ?? lists.get(keyOf(question, client))
  if (found === undefined) return undefined
  const ttlMs = found.hints.ttlMs - Math.ceil(now() - found.receivedAt)
  return ttlMs <= 0 ? undefined : { response: found.response, hints: { ...found.hints, ttlMs } }
}

/** Keeps a list for the time that the server allows: for all clients, or for this one. */
export function cacheList(
  entry: McpTargetEntry,
  question: ListQuestion,
  response: McpResponse,
): void {
  const { text, result } = response
  if (result === undefined || text.length > maxLength) return
  const hints = hintsOf(text, result)
  const client = hints.isPublic ? '' : question.client
  if (hints.ttlMs === 0 || client === undefined) return
  const short = { ...hints, ttlMs: Math.min(hints.ttlMs, maxMs) }
  memory.of(entry).lists.set(keyOf(question, client), { response, receivedAt: now(), hints: short })
}

export function forgetCachedLists(entry: McpTargetEntry): void {
  memory.of(entry).lists = new BoundedMap(maxLists)
}
