/** TLS settings for public servers: certificates are verified with the machine's CA certificates. */
import type { TlsSettings } from '../../../../ground/exchange/connection.ts'
import { settingsOf } from './apply.ts'

let settings: TlsSettings | undefined

const noSecret = (): never => {
  throw new Error('these settings need no secret')
}

/** Creates the settings at the first call, because reading the machine's CA certificates takes time. */
export function machineTls(): TlsSettings {
  settings ??= settingsOf({ verify: 'full' }, { value: noSecret })
  return settings
}
