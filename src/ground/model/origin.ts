/** Parses and compares origins (RFC 6454 section 4). The port of a parsed origin is always set. */

export interface Origin {
  readonly scheme: string
  readonly host: string
  readonly port: string
}

const defaultPorts: Readonly<Record<string, string>> = {
  http: '80',
  https: '443',
  ws: '80',
  wss: '443',
}

const form = /^([a-z][a-z0-9+.-]*):\/\/(\[[0-9a-f:.]+\]|[^/:?#@[\]\\%<>^|\s]+)(?::([0-9]{1,5}))?$/

/** Returns undefined for `null` and for any other text that is not an origin. */
export function parseOrigin(text: string): Origin | undefined {
  const match = form.exec(text.toLowerCase())
  const [, scheme, host, given] = match ?? []
  if (scheme === undefined || host === undefined) return undefined
  const port = given ?? defaultPorts[scheme]
  return port === undefined ? undefined : { scheme, host, port: String(Number(port)) }
}

/** Formats an origin as `scheme://host:port`. */
export function originText({ scheme, host, port }: Origin): string {
  return `${scheme}://${host}:${port}`
}

/**
 * Whether the host of the origin is the host that the request is for. Schemes are not compared, since TLS may
 * end before the gateway. An authority without port has the default port of the origin's scheme.
 */
export function isSameHost(origin: Origin, authority: string): boolean {
  const own = parseOrigin(`${origin.scheme}://${authority}`)
  return own !== undefined && own.host === origin.host && own.port === origin.port
}
