import { choice, list, optional, record, type Shape, text } from '../../base/shape.ts'
import { milliseconds } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1; a field that the user did not set is absent. */
export interface FrontendTlsConfig {
  readonly handshakeTimeoutMs?: number
  readonly alpn?: readonly string[]
  readonly minVersion?: '1.2' | '1.3'
  readonly maxVersion?: '1.2' | '1.3'
  /** By their names in OpenSSL, best first; the suites of TLS 1.3 begin with `TLS_`. */
  readonly ciphers?: readonly string[]
}

const version = choice('1.2', '1.3')

const shape: Shape<FrontendTlsConfig> = record({
  handshakeTimeoutMs: optional(milliseconds),
  alpn: optional(list(text)),
  minVersion: optional(version),
  maxVersion: optional(version),
  ciphers: optional(list(text)),
})

const apply: PolicyApply<FrontendTlsConfig> = {
  shape,
  bind: (tls) => ({ client: { tls } }),
}

export default apply
