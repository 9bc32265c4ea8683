/** The way of a request to a backend of MCP servers (streamable HTTP), by its method. */

import { GatewayError } from '../../../errors/index.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes } from '../answers.ts'
import { checkRequest } from './checks.ts'
import { serveGet } from './get.ts'
import { isLegacyStream } from './legacy.ts'
import { serveLegacyStream } from './legacy-client.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { servePost } from './post.ts'
import { jsonRefusal } from './refusals.ts'
import { serveDelete } from './session-requests.ts'

type Result = RespondVerdict | undefined

/** Undefined: a stream has begun. */
export async function serveMcp(exchange: McpExchange): Promise<Result> {
  const { access, context } = exchange
  if (access.problem !== undefined) {
    throw new GatewayError(access.problem.code, access.problem.detail)
  }
  context.keepOriginal()
  const guard = access.policies.steps.find(({ mcp }) => mcp !== undefined)
  const verdict = await guard?.onRequest?.(context.exchange)
  if (context.over) return undefined
  if (verdict?.kind === 'respond') return verdict
  const refused = checkRequest(exchange)
  if (refused !== undefined) return refused
  if (exchange.backend.targets.length === 0) {
    const reason = 'NoHealthyBackend'
    return jsonRefusal(503, undefined, codes.internal, 'no server is there', { reason })
  }
  switch (context.exchange.request.method) {
    case 'POST':
      return servePost(exchange)
    case 'GET':
      return isLegacyStream(exchange) ? serveLegacyStream(exchange) : serveGet(exchange)
    default:
      return serveDelete(exchange)
  }
}
