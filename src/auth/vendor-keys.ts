/** Where SDKs of model vendors put API keys, beside `Authorization: Bearer`. */
import { changeQuery } from '../base/query-string.ts'

/** Vendors C, B and D, in this order. */
const keyHeaders = ['x-api-key', 'api-key', 'x-goog-api-key'] as const

/** Of vendor D, and of realtime sessions of vendor B. */
const keyParameters: ReadonlySet<string> = new Set(['key', 'api-key'])

/** Browsers cannot set headers of WebSockets, so SDKs of vendor A offer the key as a subprotocol. */
const keyProtocol = 'openai-insecure-api-key.'

/** Subprotocols that carry no credential. */
const knownProtocol = /^(?:realtime|openai-(?:beta|organization|project)\..*)$/i

interface KeyedRequest {
  readonly headers: {
    getAll(name: string): string[]
    set(name: string, value: string): void
    remove(name: string): void
  }
  query: string | undefined
}

export function isKeyParameter(name: string): boolean {
  return keyParameters.has(name.toLowerCase())
}

/** Every key in these places, once each. */
export function vendorKeysOf({ headers, query }: KeyedRequest): ReadonlySet<string> {
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

/** Removes the keys from these places. */
export function removeVendorKeys(request: KeyedRequest): void {
  const { headers, query } = request
  for (const name of keyHeaders) headers.remove(name)
  keepSubprotocols(headers, (offered) => !isKeyProtocol(offered))
  if (query === undefined) return
  const kept = changeQuery(query, (parameter, name) =>
    isKeyParameter(name) ? undefined : parameter,
  )
  if (kept !== query) request.query = kept
}

/** Removes every subprotocol that may be a credential; returns the key among them, if there is one. */
export function takeSubprotocolKey(headers: KeyedRequest['headers']): string | undefined {
  const key = subprotocolsOf(headers).find(isKeyProtocol)?.slice(keyProtocol.length)
  keepSubprotocols(headers, (offered) => knownProtocol.test(offered))
  return key
}

const protocolHeader = 'sec-websocket-protocol'

const isKeyProtocol = (offered: string): boolean => offered.toLowerCase().startsWith(keyProtocol)

function subprotocolsOf(headers: KeyedRequest['headers']): readonly string[] {
  return headers
    .getAll(protocolHeader)
    .flatMap((line) => line.split(','))
    .map((offered) => offered.trim())
}

function keepSubprotocols(
  headers: KeyedRequest['headers'],
  isKept: (offered: string) => boolean,
): void {
  const offered = subprotocolsOf(headers)
  const kept = offered.filter(isKept)
  if (kept.length === offered.length) return
  if (kept.length === 0) headers.remove(protocolHeader)
  else headers.set(protocolHeader, kept.join(', '))
}
