/** Requests that bring a session: whose it is, and how it ends. */

import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes } from '../answers.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { jsonRefusal, lostSession } from './refusals.ts'
import { ClientSession, endEverywhere } from './target-session.ts'

/** The session that the request names, or why there is none. */
export function findSession(exchange: McpExchange): ClientSession | RespondVerdict {
  const { hub, name, context } = exchange
  const id = context.exchange.request.headers.get('mcp-session-id')
  if (id === undefined) {
    const message = 'Bad Request: session header is required for non-initialize requests'
    return jsonRefusal(400, undefined, codes.invalidRequest, message)
  }
  const state = hub.open(id, name)
  // A session that somebody else has begun is not told from one that never was.
  if (state === undefined || state.principal !== exchange.principal) return lostSession()
  return new ClientSession(exchange, state)
}

/** DELETE: ends the session at every server. */
export async function serveDelete(exchange: McpExchange): Promise<RespondVerdict> {
  const session = findSession(exchange)
  if ('kind' in session) return session
  const ends = endEverywhere(session)
  exchange.hub.end(session.state)
  await ends
  return { kind: 'respond', status: 200, reason: 'Upstream' }
}
