/** Fetches one JSON Web Key Set over HTTP or HTTPS. */
import { isObject } from '../../ground/base/json-object.ts'
import { callBackend, type SecretLookup } from './call-backend.ts'
import type { CalledAddress } from './called-address.ts'

export type PublicKeySet = Readonly<Record<string, unknown>>

/** Maximum bytes of a key set, which must fit into an event. */
const maxBytes = 256 * 1024
const timeoutMs = 10_000

/**
 * Fetches a key set and resolves with the public members of its keys. If it rejects, the text of the Error is for
 * operators.
 */
export async function fetchKeySet(
  address: CalledAddress,
  path: string,
  secret: SecretLookup,
  stop: AbortSignal,
): Promise<PublicKeySet> {
  const headers = { accept: 'application/jwk-set+json, application/json' }
  const request = { method: 'GET', path, headers, timeoutMs, maxBytes } as const
  const { status, text } = await callBackend(address, request, secret, stop)
  if (status !== 200) throw new Error(`the server answers ${status}`)
  return publicKeySet(text)
}

/** Private members of keys, which must not be recorded (RFC 7518 section 6). */
const privateMembers = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

function publicKeySet(text: string): PublicKeySet {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new Error('the response is not JSON')
  }
  const keys = (parsed as { keys?: unknown } | null)?.keys
  if (!Array.isArray(keys)) throw new Error('the response is not a JSON Web Key Set')
  const isPublic = ([name]: readonly [string, unknown]) => !privateMembers.has(name)
  const publicPart = (key: object) => Object.fromEntries(Object.entries(key).filter(isPublic))
  return { keys: keys.filter(isObject).map(publicPart) }
}
