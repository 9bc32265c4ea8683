/** Authenticates the clients of an MCP backend before their messages are read. */
import { andThen } from '../../../../../ground/base/and-then.ts'
import type { RespondVerdict, Verdict } from '../../../../../ground/exchange/exchange.ts'
import { addNote } from '../../../../../ground/exchange/notes.ts'
import type { BackendAccess } from '../../../../proxy/config/backend-access.ts'
import { clientOrigin, sentPath } from '../../../../proxy/request/client-origin.ts'
import { requireUsable, wholeBackend } from '../../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../../proxy/request/runtime.ts'
import type { McpAuthenticator } from '../../auth/authenticator.ts'
import { type ClientView, isDiscoveryPath, readMetadataPath } from '../../auth/oauth-metadata.ts'
import { wrongMethod } from '../../auth/responses.ts'
import { mcpStepOf } from '../../policy/apply.ts'
import { rulesIn } from '../exchange/mcp-exchange.ts'
import type { McpBackends } from '../session/shared-state.ts'
import {
  accessAt,
  type McpBackend,
  type McpPlace,
  type McpTargetEntry,
  placeOf,
} from '../target/targets.ts'

type Result = RespondVerdict | undefined

/** Authenticates the request for every target, because it may affect any of them. */
export function authenticateMcp(
  context: RequestContext,
  runtime: GatewayRuntime,
  backends: McpBackends,
): Result | Promise<Result> {
  const found = backends.find(context.backend?.name ?? '')
  if (found === undefined) return undefined
  const authenticators = authenticatorsOf(context, runtime, found)
  if (authenticators !== undefined)
    return askAll(context, authenticators, clientView(context, runtime))
  const path = sentPath(context)
  if (!isDiscoveryPath(path)) return undefined
  return forwardDiscovery(context, runtime, found.targets, path)
}

function authenticatorsOf(
  { placement, backend }: RequestContext,
  runtime: GatewayRuntime,
  { targets }: McpBackend,
): ReadonlyMap<McpAuthenticator, object> | undefined {
  if (placement === undefined || backend === undefined) return undefined
  if (targets.length === 0)
    return authenticatorsIn(placement.backend(backend, wholeBackend), undefined)
  let found: Map<McpAuthenticator, object> | undefined
  for (const entry of targets) found = authenticatorsIn(accessAt(placement, runtime, entry), found)
  return found
}

/** Adds the authenticator of the policies, if there is one, to those that were found before. */
function authenticatorsIn(
  { policies }: BackendAccess,
  found: Map<McpAuthenticator, object> | undefined,
): Map<McpAuthenticator, object> | undefined {
  const step = mcpStepOf(policies)
  return step?.authentication === undefined ? found : new Map(found).set(step.authentication, step)
}

function askAll(
  { exchange }: RequestContext,
  authenticators: ReadonlyMap<McpAuthenticator, object>,
  client: ClientView,
): Result | Promise<Result> {
  for (const [authenticator, step] of authenticators) {
    const verdict = authenticator.authenticate(exchange, client)
    // Only requests for metadata and endpoints of OAuth give a promise. One authenticator
    // suffices there.
    if (verdict instanceof Promise) return verdict.then(refusalIn)
    if (verdict.kind === 'next') continue
    const { detail } = verdict
    if (detail !== undefined) addNote(exchange, 'backend.mcp', detail, { step, isResponse: true })
    return verdict
  }
  return undefined
}

const refusalIn = (verdict: Verdict): Result => (verdict.kind === 'respond' ? verdict : undefined)

/** Returns origin and path as the client sent them, before filters of the route changed them. */
function clientView(context: RequestContext, runtime: GatewayRuntime): ClientView {
  const { exchange, original } = context
  const path = sentPath(context)
  const query =
    original === undefined ? exchange.request.query : original.path.slice(path.length + 1)
  const origin = clientOrigin(context, runtime)
  return { origin, path, query: query ?? '', sessionKey: runtime.sessionKey }
}

const notFound: RespondVerdict = { kind: 'respond', status: 404, reason: 'NotFound' }

/** Headers to remove: a server that ignores paths could take the request for one of a session or stream. */
const streamHeaders = ['mcp-session-id', 'last-event-id']

/**
 * Forwards a request for OAuth metadata to the server, if it is the only one. Without an authentication
 * policy, the server publishes its own documents. `path` is the path that the client sent, without the
 * query.
 */
function forwardDiscovery(
  context: RequestContext,
  runtime: GatewayRuntime,
  targets: readonly McpTargetEntry[],
  path: string,
): Result | Promise<Result> {
  const [only, ...more] = targets
  const { placement, exchange } = context
  // Several servers have no common document.
  if (only === undefined || more.length > 0 || placement === undefined) return notFound
  const { request } = exchange
  const access = accessAt(placement, runtime, only)
  const isRegistration = readMetadataPath(path)?.document === 'registration'
  // A registration body could contain an MCP message, to which the rules would not be applied here.
  if (isRegistration && rulesIn(access) !== undefined) return notFound
  const allowed = isRegistration ? ['POST', 'OPTIONS'] : ['GET', 'HEAD', 'OPTIONS']
  if (!allowed.includes(request.method)) return wrongMethod(isRegistration ? 'POST' : 'GET')
  const { steps, policies } = access
  requireUsable(access)
  context.keepOriginal()
  // Filters of the route may have rewritten the path for the MCP server, so restore it.
  if (request.path !== path) request.path = path
  for (const name of streamHeaders) request.headers.remove(name)
  const setDestination = ({ address, authority, endpoint, race }: McpPlace): undefined => {
    const settings = policies.connection
    const place = { address, authority, endpoint, settings, steps, race }
    // As for messages, Host is the server's own name by default.
    context.destination = { ...place, isHostname: true }
  }
  return andThen(placeOf(runtime, only, access, undefined), setDestination)
}
