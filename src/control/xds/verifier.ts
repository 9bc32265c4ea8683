/** Decides which proxies may open a configuration stream. */
import type { ObjectName } from '../../ground/model/names.ts'
import { proxyObjectName } from '../../ground/model/proxy-names.ts'

/** The verified identity of a proxy. */
export interface ProxyIdentity {
  /** The only Gateway whose configuration the proxy may get. If omitted, the proxy may get any. */
  readonly gateway?: ObjectName
}

interface Credentials {
  /** The bearer token; undefined if none was sent. */
  readonly token: string | undefined
  /** Address of the proxy, as gRPC writes it. */
  readonly peer: string
}

/**
 * Resolves with the identity of a proxy, or undefined if its credentials are not valid. Rejects if
 * they cannot be checked now; the proxy then retries.
 */
export type VerifyProxy = (credentials: Credentials) => Promise<ProxyIdentity | undefined>

/** Whether an address is on loopback: `ipv4:127.0.0.1:50000`, `ipv6:[::1]:50000` or without the scheme. */
function isLoopback(peer: string): boolean {
  const address = peer.replace(/^ipv[46]:/, '')
  return /^(?:\[?(?:::ffff:)?127\.|\[?::1\]?(?::\d+)?$|unix:)/.test(address)
}

/** Accepts exactly the proxies on the same machine, without tokens. */
export const verifyLoopback: VerifyProxy = async ({ peer }) => (isLoopback(peer) ? {} : undefined)

/** Whether a service account is named after a Gateway, or after the objects deployed for it. */
export function isAccountOf(account: ObjectName, gateway: ObjectName): boolean {
  if (account.namespace !== gateway.namespace) return false
  return account.name === gateway.name || account.name === proxyObjectName(gateway.name)
}
