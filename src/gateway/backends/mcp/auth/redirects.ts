/**
 * Redirect URIs of clients. At the provider, each URI is replaced by a callback with the URI's key.
 * The provider checks which callbacks a client may use, so the gateway needs no list of clients.
 */
import { hash } from 'node:crypto'
import { ExpiringMap } from '../../../../ground/base/bounded-map.ts'

const maxLength = 2_048
/** Characters of URIs (RFC 3986) without `#`, because a redirect URI has no fragment (RFC 6749 3.1.2). */
const characters = /^[\w!$%&'()*+,./:;=?@[\]~-]+$/
/** Schemes of URIs that browsers run or show themselves. */
const unsafeScheme = /^(?:about|blob|data|file|filesystem|javascript|vbscript|view-source):/i

export function isRedirectUri(uri: unknown): uri is string {
  if (typeof uri !== 'string' || uri.length > maxLength) return false
  if (!characters.test(uri) || unsafeScheme.test(uri)) return false
  const url = URL.parse(uri)
  return url !== null && url.username === '' && url.password === ''
}

/** Ports of loopback addresses differ from one sign-in to the next (RFC 8252 section 7.3). */
const loopbackPort = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)):\d{1,5}(?=[/?]|$)/

/** Digest of a redirect URI, without the port if it is of a loopback address: 43 characters of base64url. */
export function redirectKeyOf(uri: string): string {
  return hash('sha256', uri.replace(loopbackPort, '$1'), 'base64url')
}

/** How long the gateway remembers that the provider accepts a callback. */
const acceptedMs = 600_000
const maxAccepted = 4_096

/** Callbacks that the provider has accepted for a client, by `acceptedKey`. */
export type AcceptedCallbacks = ExpiringMap<string, true>

export const acceptedCallbacks = (): AcceptedCallbacks => new ExpiringMap(maxAccepted, acceptedMs)

export const acceptedKey = (client: string, callback: string): string => `${callback} ${client}`
