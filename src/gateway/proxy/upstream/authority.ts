import { isIPv6 } from 'node:net'

/** The parts of an authority. `host` has no brackets; `port` is undefined if the authority has none. */
interface HostAndPort {
  readonly host: string
  readonly port?: number
}

/** Splits `host`, `host:port`, `[v6]` or `[v6]:port` (RFC 3986 3.2.2). Returns undefined for other texts. */
export function splitAuthority(authority: string): HostAndPort | undefined {
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]/?#@\s]+))(?::([0-9]{0,5}))?$/.exec(authority)
  const host = parts?.[1] ?? parts?.[2]
  if (host === undefined || (parts?.[1] !== undefined && !isIPv6(host))) return undefined
  const digits = parts?.[3]
  if (digits === undefined || digits === '') return { host }
  const port = Number(digits)
  return port >= 1 && port <= 65535 ? { host, port } : undefined
}

/** Joins host and port. Omits the default port of the scheme. */
export function joinAuthority(host: string, port: number, scheme: string): string {
  const name = host.includes(':') ? `[${host}]` : host
  return port === defaultPort(scheme) ? name : `${name}:${port}`
}

export function defaultPort(scheme: string): number {
  return scheme === 'https' ? 443 : 80
}
