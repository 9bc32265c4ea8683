import type { PolicyApply } from '../../define.ts'
import { type GatewayCertificateConfig, shape } from './config.ts'

const apply: PolicyApply<GatewayCertificateConfig> = {
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
