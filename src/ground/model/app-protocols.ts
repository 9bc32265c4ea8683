/**
 * Which kind of HTTP the appProtocol of a Service port allows (GEP-1911, KEP-3726, and other names
 * in common use). Names are compared without regard to case.
 */
interface AppProtocol {
  /** If omitted, the name does not determine the version. */
  readonly version?: '1.1' | '2'
  /** The port accepts only TLS. */
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
  // These names do not determine the version of HTTP.
  ...['http/1.1', 'http/2', 'h2', 'grpc-web', 'ws', 'wss', 'tcp', 'tls'].map(
    (name): [string, AppProtocol] => [name, open],
  ),
])

/** Returns undefined if the named protocol rules out HTTP. An unset name does not rule it out. */
export function appProtocolOf(name: string | undefined): AppProtocol | undefined {
  return name === undefined || name === '' ? open : known.get(name.toLowerCase())
}

/** The known names, for messages. */
export const knownAppProtocols: readonly string[] = [...known.keys()]
