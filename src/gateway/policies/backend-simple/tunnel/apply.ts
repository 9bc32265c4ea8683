import { hash } from 'node:crypto'
import { serverIdentity } from '../../../../engines/tls-client/handshake.ts'
import { choice, type Infer, optional, port, record, text } from '../../../../ground/base/shape.ts'
import type { ProxySettings } from '../../../../ground/exchange/connection.ts'
import type { SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { PolicyApply } from '../../define.ts'
import { settingsOf } from '../tls/apply.ts'

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
  const { scheme, host, port, username, password } = config
  const value = (digest: string) => Buffer.from(secrets.value(digest)).toString()
  return {
    // The config contains digests of the credentials, so it identifies them too.
    identity: hash('sha256', JSON.stringify(config), 'base64url'),
    protocol: scheme === 'socks5' ? 'socks5' : 'http',
    host,
    port,
    ...(scheme === 'https' && { tls: tlsTo(host, secrets) }),
    ...(username !== undefined &&
      password !== undefined && {
        credentials: { username: value(username), password: value(password) },
      }),
  }
}

/** The certificate of the proxy must be signed by a CA that the machine trusts. */
function tlsTo(host: string, secrets: SecretValues): NonNullable<ProxySettings['tls']> {
  const settings = settingsOf({ verify: 'full' }, secrets)
  return { ...serverIdentity(settings, host), context: settings.context, alpn: ['http/1.1'] }
}
