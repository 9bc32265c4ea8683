/** How the client of a request sees the gateway. */
import { withoutRootDot } from '../../ground/base/root-dot.ts'
import type { Exchange } from '../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../ground/exchange/forwarding.ts'

/** Says whether an address is that of a proxy whose forwarding headers count. Undefined: none is. */
interface TrustedProxies {
  readonly isTrustedProxy?: ((address: string) => boolean) | undefined
}

/**
 * Scheme and authority that the client has used, such as `https://mcp.example.com`. A trusted proxy in front may report
 * the scheme. `authority` is that of the request unless a filter has replaced it.
 */
export function clientOrigin(
  { request, rawSource, extensions }: Pick<Exchange, 'request' | 'rawSource' | 'extensions'>,
  { isTrustedProxy }: TrustedProxies,
  authority: string = request.authority,
): string {
  const forwardedScheme = request.headers.get('x-forwarded-proto')?.trim().toLowerCase()
  const isForwarded =
    (forwardedScheme === 'https' || forwardedScheme === 'http') &&
    (extensions.get(forwardingExtensions.trustsPeer) ?? isTrustedProxy?.(rawSource.address)) ===
      true
  const scheme = isForwarded ? forwardedScheme : request.scheme
  return `${scheme}://${withoutRootDot(authority)}`
}
