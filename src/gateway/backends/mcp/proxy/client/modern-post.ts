/** Serves a message of the modern era. Every request is complete in itself. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import type { ModernMessage } from '../../eras/detect-era.ts'
import { codes } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import { methodOf } from '../../methods.ts'
import { chainsFor, checkRequest } from '../calls/joined-processors.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { jsonRefusal, jsonResponse, verdictOf } from '../exchange/refusals.ts'
import { serveListen } from '../relay/subscription.ts'
import { toFailure } from '../target/target-failure.ts'
import { ModernClient } from '../upstream/modern-client.ts'
import { abandonOf, serveMessages } from './serve-messages.ts'

type Result = RespondVerdict | undefined

export function serveModern(
  exchange: McpExchange,
  { message, envelope }: ModernMessage,
): Result | Promise<Result> {
  if (message.kind === 'notification') return acceptNotification(exchange, message.method)
  const onAbandon = abandonOf(exchange)
  const upstreams = new ModernClient(exchange, envelope, message, onAbandon)
  if (methodOf(message.method, 'modern').kind === 'listen') {
    exchange.describe(message.method)
    const chains = chainsFor(exchange, 'modern', message.method)
    const listen = (request: McpRequest) => serveListen(upstreams, request, onAbandon)
    if (chains.length === 0) return listen(message)
    return checkRequest(chains, message).then((checked) =>
      'kind' in checked ? listen(checked) : jsonResponse(checked.text),
    )
  }
  const serve = () => serveMessages(exchange, [{ upstreams, message }], onAbandon, () => {})
  if (message.method !== 'server/discover') return serve()
  return upstreams.requireNoSessions().then(serve, (thrown) => {
    const failure = toFailure(thrown)
    exchange.describe(message.method)
    exchange.noteError(codes.unsupportedVersion)
    return verdictOf(failure, message.id)
  })
}

/**
 * The revision defines no notifications of clients over HTTP, so none reaches a server. Those that clients
 * may send for other transports are accepted, because they need no response.
 */
function acceptNotification(exchange: McpExchange, method: string): Result {
  exchange.describe(method)
  if (method === 'notifications/cancelled' || method === 'notifications/progress') {
    return { kind: 'respond', status: 202, reason: 'Upstream' }
  }
  exchange.noteError(codes.methodNotFound)
  return jsonRefusal(404, undefined, codes.methodNotFound, 'Method not found')
}
