/** Who may open a configuration stream. */
import { hash, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ObjectName } from '../model/names.ts'
import { proxyObjectName } from '../model/proxy-names.ts'

/** What a proxy has proved to be. */
export interface ProxyIdentity {
  /** The one Gateway whose configuration it may have; absent where it may have any. */
  readonly gateway?: ObjectName
}

interface Credentials {
  /** The bearer token; undefined where none came. */
  readonly token: string | undefined
  /** Address of the other side, as gRPC writes it. */
  readonly peer: string
}

/**
 * Resolves with who it is, or undefined where the proof does not hold. A rejection is a proof that
 * could not be checked now: the proxy is told to come again.
 */
export type VerifyProxy = (credentials: Credentials) => Promise<ProxyIdentity | undefined>

/** `ipv4:127.0.0.1:50000`, `ipv6:[::1]:50000` or without the scheme. */
function isLoopback(peer: string): boolean {
  const address = peer.replace(/^ipv[46]:/, '')
  return /^(?:\[?(?:::ffff:)?127\.|\[?::1\]?(?::\d+)?$|unix:)/.test(address)
}

/** Without tokens only the same machine is served. */
export const verifyLoopback: VerifyProxy = async ({ peer }) => (isLoopback(peer) ? {} : undefined)

/** One token for every proxy, in a file that is read again for each stream. */
export function verifyTokenFile(path: string): VerifyProxy {
  return async ({ token }) => {
    const expected = readFileSync(path, 'utf8').trim()
    if (expected === '' || token === undefined) return undefined
    // Digests are of one length whatever the tokens are.
    return timingSafeEqual(digest(token), digest(expected)) ? {} : undefined
  }
}

const digest = (text: string) => hash('sha256', text, 'buffer')

/** The service account of a proxy is named after its Gateway, or as what is deployed for it. */
export function isAccountOf(account: ObjectName, gateway: ObjectName): boolean {
  if (account.namespace !== gateway.namespace) return false
  return account.name === gateway.name || account.name === proxyObjectName(gateway.name)
}
