/** How the client of a request sees the gateway. */
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import type { RequestContext } from './request-context.ts'
import type { GatewayRuntime } from './runtime.ts'

/** Scheme and authority that the client has used. A trusted proxy in front may report the scheme. */
export function clientOrigin(
  { exchange, original }: RequestContext,
  { isTrustedProxy }: Pick<GatewayRuntime, 'isTrustedProxy'>,
): string {
  const { request, rawSource } = exchange
  const forwardedScheme = request.headers.get('x-forwarded-proto')?.trim().toLowerCase()
  const isForwarded =
    (forwardedScheme === 'https' || forwardedScheme === 'http') &&
    isTrustedProxy?.(rawSource.address) === true
  const scheme = isForwarded ? forwardedScheme : request.scheme
  return `${scheme}://${withoutRootDot(original?.host ?? request.authority)}`
}

/** Path as the client sent it, without the query. */
export function sentPath({ exchange, original }: RequestContext): string {
  if (original === undefined) return exchange.request.path
  const mark = original.path.indexOf('?')
  return mark < 0 ? original.path : original.path.slice(0, mark)
}
