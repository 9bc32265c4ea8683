/** TLS as vendors' own endpoints are spoken to: by the authorities that the machine trusts. */
import type { TlsSettings } from '../../../exchange/connection.ts'
import { settingsOf } from '../../../policies/backend-simple/tls/apply.ts'

let settings: TlsSettings | undefined

const none = (): never => {
  throw new Error('TLS of vendors needs no secret')
}

/** Made when first asked for: reading the machine's authorities takes time. */
export function vendorTls(): TlsSettings {
  settings ??= settingsOf({ verify: 'full' }, { value: none })
  return settings
}
