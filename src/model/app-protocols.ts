/**
 * What the appProtocol of a Service port says of how HTTP is spoken there (GEP-1911, KEP-3726, and the
 * names that are in use for the same). Names are compared without case.
 */
interface AppProtocol {
  /** Absent: the name leaves it open. */
  readonly version?: '1.1' | '2'
  /** Only over TLS. */
  readonly isTls?: boolean
}

const open: AppProtocol = {}
const http1: AppProtocol = { version: '1.1' }
const http2: AppProtocol = { version: '2' }

const known: ReadonlyMap<string, AppProtocol> = new Map([
  ['http', http1],
  ['kubernetes.io/ws', http1],
  ['kubernetes.io/wss', { version: '1.1', isTls: true }],
  ['h2c', http2],
  ['kubernetes.io/h2c', http2],
  ['http2', http2],
  ['grpc', http2],
  ['https', { isTls: true }],
  // They say less than they could, and nothing that keeps HTTP from being spoken.
  ...['http/1.1', 'http/2', 'h2', 'grpc-web', 'ws', 'wss', 'tcp', 'tls'].map(
    (name): [string, AppProtocol] => [name, open],
  ),
])

/** Undefined where HTTP may not be what is spoken there; a port without the field says nothing. */
export function appProtocolOf(name: string | undefined): AppProtocol | undefined {
  return name === undefined || name === '' ? open : known.get(name.toLowerCase())
}

/** The names that are known, for messages. */
export const knownAppProtocols: readonly string[] = [...known.keys()]
