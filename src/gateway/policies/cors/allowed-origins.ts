import { type Origin, originText, parseOrigin } from '../../../ground/model/origin.ts'

interface Wildcard {
  readonly scheme: string
  readonly port: string
  /** Suffix of the host, such as `.example.com`; empty if every host matches. */
  readonly suffix: string
}

/**
 * Makes a function that tests an Origin header. The entry `*` allows every value, even the `null` of
 * sandboxed pages. A `*` at the start of a host matches one or more labels (Gateway API,
 * HTTPCORSFilter.allowOrigins).
 */
export function originTest(origins: readonly string[]): (header: string) => boolean {
  if (origins.includes('*')) return () => true
  const exact = new Set(origins.filter((origin) => !origin.includes('*')))
  const wildcards = origins.filter((origin) => origin.includes('*')).map(parseWildcard)
  return (header) => {
    const origin = parseOrigin(header)
    if (origin === undefined) return false
    return exact.has(originText(origin)) || wildcards.some((wildcard) => fits(wildcard, origin))
  }
}

/** Parses `scheme://*:port` or `scheme://*.suffix:port`. */
function parseWildcard(text: string): Wildcard {
  const [scheme = '', rest = ''] = text.split('://')
  const [host = '', port = ''] = rest.split(':')
  return { scheme, port, suffix: host.slice(1) }
}

function fits({ scheme, port, suffix }: Wildcard, origin: Origin): boolean {
  if (origin.scheme !== scheme || origin.port !== port) return false
  return origin.host.length > suffix.length && origin.host.endsWith(suffix)
}
