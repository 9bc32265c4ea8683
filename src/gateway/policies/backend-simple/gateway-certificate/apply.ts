import { type Infer, record, text } from '../../../../ground/base/shape.ts'
import type { PolicyApply } from '../../define.ts'

/**
 * The compiled form that proxies receive: the client certificate that a Gateway presents to backends (Gateway API,
 * `spec.tls.backend.clientCertificateRef`), as the digests of the chain and of its private key.
 */
const shape = record({ chain: text, key: text })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ chain, key }, _callouts, secrets) => ({
    connection: {
      gatewayCertificate: {
        identity: chain,
        chain: secrets.value(chain),
        key: secrets.value(key),
      },
    },
  }),
}

export default apply
