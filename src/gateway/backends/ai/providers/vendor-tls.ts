/** TLS settings for the vendors' own hosts: certificates are verified with the machine's CA certificates. */
import type { TlsSettings } from '../../../../ground/exchange/connection.ts'
import { settingsOf } from '../../../policies/backend-simple/tls/apply.ts'

let settings: TlsSettings | undefined

const noSecret = (): never => {
  throw new Error('TLS of vendors needs no secret')
}

/** Creates the settings at the first call, because reading the machine's CA certificates takes time. */
export function vendorTls(): TlsSettings {
  settings ??= settingsOf({ verify: 'full' }, { value: noSecret })
  return settings
}
