import { choice, type Infer, list, optional, record, text } from '../../../ground/base/shape.ts'
import { milliseconds } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

const version = choice('1.2', '1.3')

/** The compiled form that proxies receive. Fields that the user did not set are omitted. */
const shape = record({
  handshakeTimeoutMs: optional(milliseconds),
  alpn: optional(list(text)),
  minVersion: optional(version),
  maxVersion: optional(version),
  /** OpenSSL names in order of preference. Names of TLS 1.3 suites begin with `TLS_`. */
  ciphers: optional(list(text)),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: (tls) => ({ client: { tls } }),
}

export default apply
