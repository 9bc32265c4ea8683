/**
 * TLS to endpoint pickers. They make certificates of their own when they start, which nobody can
 * verify, so whoever answers is believed (Gateway API Inference Extension); `backend.tls` or a
 * BackendTLSPolicy for the Service of the picker settles it otherwise, and the appProtocol
 * `kubernetes.io/h2c` of its port says that it speaks in clear.
 */
import type { TlsSettings } from '../../../exchange/connection.ts'
import type { CalloutTarget } from '../../../exchange/exchange.ts'
import { settingsOf } from '../../../policies/backend-simple/tls/apply.ts'
import type { BoundPolicies } from '../../../proxy/config/policies.ts'
import type { ConfigStore } from '../../../proxy/config/store.ts'

let settings: TlsSettings | undefined

const none = (): never => {
  throw new Error('TLS that verifies nothing needs no secret')
}

/** The policies of a picker's Service, with TLS where none of them settles it. */
export function withPickerTls(
  found: BoundPolicies,
  { services }: Pick<ConfigStore, 'services'>,
  target: CalloutTarget,
): BoundPolicies {
  const { connection } = found
  if (connection.tls !== undefined || target.type !== 'service') return found
  const ports = services.find(`${target.namespace}/${target.name}`)?.ports
  const port = ports?.find((one) => one.port === target.port && one.protocol !== 'UDP')
  if (port?.appProtocol?.toLowerCase() === 'kubernetes.io/h2c') return found
  settings ??= settingsOf({ verify: 'none' }, { value: none })
  return { ...found, connection: { ...connection, tls: settings } }
}
