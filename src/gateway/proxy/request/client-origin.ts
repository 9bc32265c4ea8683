/** How the client of a request sees the gateway. */
import { clientOrigin as originOf } from '../../tokens/client-origin.ts'
import type { RequestContext } from './request-context.ts'
import type { GatewayRuntime } from './runtime.ts'

/** Scheme and authority that the client has used. A trusted proxy in front may report the scheme. */
export function clientOrigin(
  { exchange, original }: RequestContext,
  { isTrustedProxy }: Pick<GatewayRuntime, 'isTrustedProxy'>,
): string {
  return originOf(exchange, { isTrustedProxy }, original?.host)
}

/** Path as the client sent it, without the query. */
export function sentPath({ exchange, original }: RequestContext): string {
  if (original === undefined) return exchange.request.path
  const mark = original.path.indexOf('?')
  return mark < 0 ? original.path : original.path.slice(0, mark)
}
