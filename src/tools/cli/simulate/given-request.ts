/** Requests that do not come from records. Their listener port may differ from the port of their URL. */
import type { SimulatedRequest } from '../../../past/simulate/index.ts'
import { UsageError } from '../shared/output.ts'

export interface GivenRequest extends SimulatedRequest {
  /** Port of the URL. It may be mapped to another port of a listener. */
  readonly urlPort?: number
  /** The Gateway as `namespace/name` and the listener that received it, if they are known. */
  readonly gateway?: string
  readonly listener?: string
}

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443 }

/** Reads the scheme, host, path and query of a URL. The scheme is http if omitted. @throws UsageError */
export function requestAt(
  url: string,
  from: string,
): Pick<GivenRequest, 'scheme' | 'host' | 'path' | 'query' | 'urlPort'> {
  const [, scheme = 'http', rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is.exec(url) ?? []
  const lower = scheme.toLowerCase()
  if (lower !== 'http' && lower !== 'https') {
    throw new UsageError(`${from}: the URL ${url} is neither http nor https`)
  }
  // The path is kept as it is written, because routes may depend on how it is escaped.
  const [, authority = '', path = '', query] = /^([^/?#]*)([^?#]*)(?:\?([^#]*))?/.exec(rest) ?? []
  const [, host = '', port] = /^(?:.*@)?(.*?)(?::(\d{1,5}))?$/.exec(authority) ?? []
  if (host === '') throw new UsageError(`${from}: the URL ${url} has no host`)
  const isDefault = port === undefined || Number(port) === defaultPorts[lower]
  return {
    scheme: lower,
    host: isDefault ? host.toLowerCase() : `${host.toLowerCase()}:${port}`,
    path: path === '' ? '/' : path,
    ...(query !== undefined && { query }),
    urlPort: port === undefined ? defaultPorts[lower] : Number(port),
  }
}
