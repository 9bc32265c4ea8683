/**
 * Metadata of OAuth of a single server that asks for tokens itself: without an authentication policy
 * the documents are the server's own, and requests for them are forwarded as they are.
 */

import { GatewayError } from '../../../errors/index.ts'
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { wrongMethod } from '../auth/own-answers.ts'
import { readMetadataPath } from '../auth/well-known.ts'
import { rulesIn } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { type McpPlace, placeOf, targetPart } from './resolve-mcp-target.ts'

type Result = RespondVerdict | undefined

const notFound: RespondVerdict = { kind: 'respond', status: 404, reason: 'NotFound' }

/** Of streams and sessions, which a server that looks at no path could take such a request for. */
const streamHeaders = ['mcp-session-id', 'last-event-id']

/** Sets the destination of a request for metadata. `path`: as the client sent it, without the query. */
export function forwardDiscovery(
  context: RequestContext,
  runtime: GatewayRuntime,
  targets: readonly McpTargetEntry[],
  path: string,
): Result | Promise<Result> {
  const [only, ...more] = targets
  const { placement, exchange } = context
  // Several servers have no document in common.
  if (only === undefined || more.length > 0 || placement === undefined) return notFound
  const { request } = exchange
  const access = placement.backend(only.named, () => targetPart(runtime, only))
  const isRegistration = readMetadataPath(path)?.document === 'registration'
  // A body could be a message, and rules judge messages at the path of the server only.
  if (isRegistration && rulesIn(access) !== undefined) return notFound
  const allowed = isRegistration ? ['POST', 'OPTIONS'] : ['GET', 'HEAD', 'OPTIONS']
  if (!allowed.includes(request.method)) return wrongMethod(isRegistration ? 'POST' : 'GET')
  const { problem, steps, policies } = access
  if (problem !== undefined) throw new GatewayError(problem.code, problem.detail)
  context.keepOriginal()
  // Filters of the route are meant for the path of the server.
  if (request.path !== path) request.path = path
  for (const name of streamHeaders) request.headers.remove(name)
  const arrive = ({ address, authority, endpoint, race }: McpPlace): undefined => {
    const settings = policies.connection
    const place = { address, authority, endpoint, settings, steps, ...(race && { race }) }
    // As messages do, it names the server by its own name by default.
    context.destination = { ...place, isHostname: true }
  }
  const found = placeOf(runtime, only, access, undefined)
  return found instanceof Promise ? found.then(arrive) : arrive(found)
}
