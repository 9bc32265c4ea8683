/** Headers, query parameters and subprotocols in which vendors' SDKs send keys, besides Authorization. */
import { changeQuery } from '../../ground/base/query-string.ts'
import type { ClientKeys, KeyedRequest } from '../../ground/exchange/forwarding.ts'

/** Header and query parameter in which the SDKs of one vendor put the API key. */
interface KeyPlaces {
  /** Header name in lower case. */
  readonly header: string
  /** A query parameter that carries the same key. */
  readonly parameter?: string
}

/** Vendors whose SDKs send the key in a header of their own, or in the query parameter. */
export const vendorKeyPlaces = {
  vendorC: { header: 'x-api-key' },
  vendorB: { header: 'api-key', parameter: 'api-key' },
  vendorD: { header: 'x-goog-api-key', parameter: 'key' },
} as const satisfies Readonly<Record<string, KeyPlaces>>

/** Places that `vendorKeys` reads. A key in another place would reach the next provider. */
export type ReadKeyPlaces = KeyPlaces &
  ((typeof vendorKeyPlaces)[keyof typeof vendorKeyPlaces] | { readonly header: 'authorization' })

const places: readonly KeyPlaces[] = Object.values(vendorKeyPlaces)
const keyHeaders = places.map(({ header }) => header)
const keyParameters = new Set(places.flatMap(({ parameter }) => parameter ?? []))

/** Prefix of a subprotocol with the key. SDKs use it because browsers cannot set WebSocket headers. */
const keyProtocol = 'openai-insecure-api-key.'

/** Subprotocols that carry no credential. */
const knownProtocol = /^(?:realtime|openai-(?:beta|organization|project)\..*)$/i

export function isKeyParameter(name: string): boolean {
  return keyParameters.has(name.toLowerCase())
}

/** Returns the distinct keys in the headers, subprotocols and query of a request. */
function findKeys({ headers, query }: KeyedRequest): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const name of keyHeaders) for (const value of headers.getAll(name)) keys.add(value)
  for (const offered of subprotocolsOf(headers)) {
    if (isKeyProtocol(offered)) keys.add(offered.slice(keyProtocol.length))
  }
  if (query !== undefined) {
    changeQuery(query, (parameter, name, value) => {
      if (isKeyParameter(name)) keys.add(Buffer.from(value).toString('latin1'))
      return parameter
    })
  }
  keys.delete('')
  return keys
}

/** Removes the keys that `findKeys` returns. */
function removeKeys(request: KeyedRequest): void {
  const { headers, query } = request
  for (const name of keyHeaders) headers.remove(name)
  keepSubprotocols(headers, subprotocolsOf(headers), (offered) => !isKeyProtocol(offered))
  if (query === undefined) return
  const kept = changeQuery(query, (parameter, name) =>
    isKeyParameter(name) ? undefined : parameter,
  )
  if (kept !== query) request.query = kept
}

/** The places in which vendors' SDKs send keys. */
export const vendorKeys: ClientKeys = {
  parameters: keyParameters,
  find: findKeys,
  remove: removeKeys,
}

/** Removes every subprotocol that may be a credential; returns the first key among them. */
export function takeSubprotocolKey(headers: KeyedRequest['headers']): string | undefined {
  const offered = subprotocolsOf(headers)
  if (offered.length === 0) return undefined
  keepSubprotocols(headers, offered, (one) => knownProtocol.test(one))
  return offered.find(isKeyProtocol)?.slice(keyProtocol.length)
}

const protocolHeader = 'sec-websocket-protocol'

const isKeyProtocol = (offered: string): boolean => offered.toLowerCase().startsWith(keyProtocol)

const none: readonly string[] = []

function subprotocolsOf(headers: KeyedRequest['headers']): readonly string[] {
  const lines = headers.getAll(protocolHeader)
  if (lines.length === 0) return none
  return lines.flatMap((line) => line.split(',')).map((offered) => offered.trim())
}

function keepSubprotocols(
  headers: KeyedRequest['headers'],
  offered: readonly string[],
  isKept: (offered: string) => boolean,
): void {
  const kept = offered.filter(isKept)
  if (kept.length === offered.length) return
  if (kept.length === 0) headers.remove(protocolHeader)
  else headers.set(protocolHeader, kept.join(', '))
}
