import { choice, type Infer, optional, port, record, text } from '../../../../ground/base/shape.ts'
import type { ProxySettings } from '../../../../ground/exchange/connection.ts'
import type { SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { PolicyApply } from '../../define.ts'
import { proxySettings } from './proxy-settings.ts'

/** The compiled form that proxies receive. The last two are digests of secrets. */
const shape = record({
  scheme: choice('http', 'https', 'socks5'),
  host: text,
  port,
  username: optional(text),
  password: optional(text),
})
export type BackendTunnelConfig = Infer<typeof shape>

const apply: PolicyApply<BackendTunnelConfig> = {
  shape,
  bind: (config, _callouts, secrets) => ({ connection: { tunnel: proxyOf(config, secrets) } }),
}

export default apply

/** Throws if a secret value has not been received. */
function proxyOf(config: BackendTunnelConfig, secrets: SecretValues): ProxySettings {
  const { username, password } = config
  const value = (digest: string) => Buffer.from(secrets.value(digest)).toString()
  const credentials =
    username !== undefined && password !== undefined
      ? { username: value(username), password: value(password) }
      : undefined
  return proxySettings(config, credentials)
}
