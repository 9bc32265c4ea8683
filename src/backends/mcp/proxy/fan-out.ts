/** Joins the lists of several targets. */
import { codes, errorText, resultText } from '../answers.ts'
import { jsonValue, member, replace } from '../json/scan.ts'
import { type ListPart, mergedResult, partOf } from '../lists.ts'
import type { McpRequest, McpResponse } from '../message.ts'
import type { ListMethod } from '../methods.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { toFailure } from './refusals.ts'
import { keptItems } from './server-messages.ts'
import { type ClientSession, SessionEnded } from './target-session.ts'
import type { ReceivedResponse } from './transport.ts'

/** Sends a request to a target. */
export type Send = (
  entry: McpTargetEntry,
  request: Pick<McpRequest, 'text' | 'id'>,
) => Promise<ReceivedResponse>

type Outcome = ListPart | 'missing' | SessionEnded

/**
 * Requests a list from every target that may support it or, if the client sent a cursor, from the targets in
 * the cursor. The response names targets that failed, and is an error if all failed. Rejects with
 * SessionEnded if no server knows the session.
 */
export async function askLists(
  session: ClientSession,
  send: Send,
  request: McpRequest,
  method: ListMethod,
  cursors: ReadonlyMap<string, string> | undefined,
): Promise<string> {
  const asked = session.exchange.backend.targets.filter(({ target }) => {
    if (cursors !== undefined) return cursors.has(target.name)
    return session.can(target.name)?.includes(method.capability) ?? true
  })
  const outcomes = await Promise.all(
    asked.map(async (entry): Promise<Outcome> => {
      const text = withCursor(request, cursors?.get(entry.target.name))
      try {
        const { response } = await send(entry, { text, id: request.id })
        return partOrMissing(session, method, entry, response)
      } catch (thrown) {
        if (thrown instanceof SessionEnded) return thrown
        toFailure(thrown)
        return 'missing'
      }
    }),
  )
  const ended = outcomes.find((one) => one instanceof SessionEnded)
  const isOver = outcomes.every((one) => one instanceof SessionEnded || one === 'missing')
  if (ended !== undefined && isOver) throw ended
  const parts = outcomes.filter((one) => typeof one === 'object' && 'items' in one)
  const missing = asked.flatMap(({ target }, at) =>
    outcomes[at] === 'missing' || outcomes[at] instanceof SessionEnded ? [target.name] : [],
  )
  if (parts.length === 0 && missing.length > 0) {
    const message = `no server could be asked: ${missing.join(', ')}`
    return errorText(request.id, codes.internal, message)
  }
  return resultText(request.id, mergedResult(method, parts, missing))
}

/** Reads the part of one server. If the server does not support the method, its part is empty. */
function partOrMissing(
  { exchange }: ClientSession,
  method: ListMethod,
  entry: McpTargetEntry,
  response: McpResponse,
): ListPart | 'missing' {
  const { name } = entry.target
  if (response.error !== undefined) {
    const code = member(response.error, 'code')
    const isUnknown = code && jsonValue(response.text, code) === codes.methodNotFound
    return isUnknown === true ? { target: name, items: [], cursor: undefined } : 'missing'
  }
  return partOf(name, method, response, true, keptItems(exchange, entry, method) ?? (() => true))
}

/** Replaces the client's cursor by the cursor of the target. */
function withCursor({ text, params }: McpRequest, cursor: string | undefined): string {
  const node = member(params, 'cursor')
  if (node === undefined || cursor === undefined) return text
  return replace(text, node, JSON.stringify(cursor))
}
