/** Lists of several targets as one. */
import { codes, errorText, resultText } from '../answers.ts'
import { jsonValue, member, splice } from '../json/scan.ts'
import { type ListPart, mergedResult, partOf } from '../lists.ts'
import type { McpRequest } from '../message.ts'
import type { ListMethod } from '../methods.ts'
import { toFailure } from './failure.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { keptItems } from './server-messages.ts'
import { type ClientSession, SessionEnded } from './target-session.ts'
import type { Answered } from './transport.ts'

/** Asks targets for a client. */
interface ListTurn {
  readonly session: ClientSession
  send(entry: McpTargetEntry, request: Pick<McpRequest, 'text' | 'id'>): Promise<Answered>
}

type Outcome = ListPart | 'missing' | SessionEnded

/**
 * Asks every target that may have some, or those that the client's cursor says have more. What a
 * target cannot give is missing from the answer, which names it; an answer without any part is an
 * error. Rejects with SessionEnded where no server knows the session.
 */
export async function askLists(
  turn: ListTurn,
  request: McpRequest,
  method: ListMethod,
  cursors: ReadonlyMap<string, string> | undefined,
): Promise<string> {
  const asked = turn.session.exchange.backend.targets.filter(({ target }) => {
    if (cursors !== undefined) return cursors.has(target.name)
    return turn.session.can(target.name)?.includes(method.capability) ?? true
  })
  const outcomes = await Promise.all(
    asked.map((entry) => askOne(turn, request, method, entry, cursors?.get(entry.target.name))),
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

async function askOne(
  turn: ListTurn,
  request: McpRequest,
  method: ListMethod,
  entry: McpTargetEntry,
  cursor: string | undefined,
): Promise<Outcome> {
  const { name } = entry.target
  const text = withCursor(request, cursor)
  try {
    const { response } = await turn.send(entry, { text, id: request.id })
    if (response.error !== undefined) {
      const code = member(response.error, 'code')
      const isUnknown = code && jsonValue(response.text, code) === codes.methodNotFound
      return isUnknown === true ? { target: name, items: [], cursor: undefined } : 'missing'
    }
    const keeps = keptItems(turn.session.exchange, entry, method) ?? (() => true)
    return partOf(name, method, response, true, keeps)
  } catch (thrown) {
    if (thrown instanceof SessionEnded) return thrown
    toFailure(thrown)
    return 'missing'
  }
}

/** The request with the target's own cursor in the place of the client's. */
function withCursor({ text, params }: McpRequest, cursor: string | undefined): string {
  const node = member(params, 'cursor')
  if (node === undefined || cursor === undefined) return text
  return splice(text, [{ start: node.start, end: node.end, text: JSON.stringify(cursor) }])
}
