/** Which origins a CORS policy allows. */
import { type Origin, originText, parseOrigin } from '../../model/origin.ts'

interface Wildcard {
  readonly scheme: string
  readonly port: string
  /** `.example.com`; empty where every host fits. */
  readonly suffix: string
}

/**
 * A test of Origin header values. `*` alone takes every value, `null` of sandboxed pages included;
 * `*` in front of a host stands for one or more labels (Gateway API, HTTPCORSFilter.allowOrigins).
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

/** `scheme://*:port` or `scheme://*.suffix:port`. */
function parseWildcard(text: string): Wildcard {
  const [scheme = '', rest = ''] = text.split('://')
  const [host = '', port = ''] = rest.split(':')
  return { scheme, port, suffix: host.slice(1) }
}

function fits({ scheme, port, suffix }: Wildcard, origin: Origin): boolean {
  if (origin.scheme !== scheme || origin.port !== port) return false
  return origin.host.length > suffix.length && origin.host.endsWith(suffix)
}
