/** Who a client of an MCP backend is, before anything that it says is read. */

import { withoutRootDot } from '../../../base/root-dot.ts'
import type { RespondVerdict, Verdict } from '../../../exchange/exchange.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { McpAuthenticator } from '../auth/authenticator.ts'
import type { ClientView } from '../auth/resource-metadata.ts'
import { isDiscoveryPath } from '../auth/well-known.ts'
import { mcpStepOf } from '../policy/step.ts'
import { forwardDiscovery } from './discovery.ts'
import type { McpBackends } from './hub.ts'
import type { McpBackend } from './mcp-targets.ts'
import { targetPart } from './resolve-mcp-target.ts'

type Result = RespondVerdict | undefined

/**
 * Every authentication that holds for one of the targets must let the request pass: what it does
 * behind the gateway may concern any of them.
 */
export function authenticateMcp(
  context: RequestContext,
  runtime: GatewayRuntime,
  backends: McpBackends,
): Result | Promise<Result> {
  const found = backends.find(context.backend?.name ?? '')
  if (found === undefined) return undefined
  const client = clientView(context, runtime)
  const authenticators = authenticatorsOf(context, runtime, found)
  if (authenticators.size > 0) return askAll(context, authenticators, client)
  if (!isDiscoveryPath(client.path)) return undefined
  return forwardDiscovery(context, runtime, found.targets, client.path)
}

const whole = { sections: [], needsTls: false }

function authenticatorsOf(
  { placement, backend }: RequestContext,
  runtime: GatewayRuntime,
  { targets }: McpBackend,
): ReadonlySet<McpAuthenticator> {
  const found = new Set<McpAuthenticator>()
  if (placement === undefined || backend === undefined) return found
  const add = ({ policies }: ReturnType<typeof placement.backend>) => {
    const step = mcpStepOf(policies)
    if (step?.authentication !== undefined) found.add(step.authentication)
  }
  for (const entry of targets) add(placement.backend(entry.named, () => targetPart(runtime, entry)))
  if (targets.length === 0) add(placement.backend(backend, () => whole))
  return found
}

function askAll(
  { exchange }: RequestContext,
  authenticators: Iterable<McpAuthenticator>,
  client: ClientView,
): Result | Promise<Result> {
  for (const authenticator of authenticators) {
    const verdict = authenticator.authenticate(exchange, client)
    // What takes time is an answer from elsewhere, so that no other is asked.
    if (verdict instanceof Promise) return verdict.then(answerOf)
    if (verdict.kind === 'respond') return verdict
  }
  return undefined
}

const answerOf = (verdict: Verdict): Result => (verdict.kind === 'respond' ? verdict : undefined)

/** As the client sees it, whatever routes have made of the request. */
function clientView(
  { exchange, original }: RequestContext,
  { isTrustedProxy }: GatewayRuntime,
): ClientView {
  const { request, rawSource } = exchange
  const said = request.headers.get('x-forwarded-proto')?.trim().toLowerCase()
  const isTold =
    (said === 'https' || said === 'http') && isTrustedProxy?.(rawSource.address) === true
  const scheme = isTold ? said : request.scheme
  const [path = '/'] = (original?.path ?? request.path).split('?', 1)
  return { origin: `${scheme}://${withoutRootDot(original?.host ?? request.authority)}`, path }
}
