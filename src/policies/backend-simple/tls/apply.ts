import { createHash } from 'node:crypto'
import { createSecureContext, type SecureContextOptions, setDefaultCACertificates } from 'node:tls'
import type { PresentedCertificate, TlsSettings } from '../../../exchange/connection.ts'
import type { SecretValues } from '../../../exchange/exchange.ts'
import type { BackendTlsConfig } from '../../../model/backend-tls.ts'
import { contextOptions, systemAuthorities } from '../../../tls-client/context.ts'
import type { PolicyApply } from '../../define.ts'
import { shape } from './config.ts'

const apply: PolicyApply<BackendTlsConfig> = {
  shape,
  bind: (config, _callouts, secrets) => ({ connection: { tls: settingsOf(config, secrets) } }),
}

export default apply

/** Throws where a value has not arrived, or OpenSSL refuses one. */
export function settingsOf(config: BackendTlsConfig, secrets: SecretValues): TlsSettings {
  const { verify, serverName, names, alpn, takesGatewayCertificate } = config
  const options = contextOptions(config, (digest) => secrets.value(digest), trustSystem)
  const settings: TlsSettings = {
    // Secrets stand in the config by the digests of their values.
    identity: createHash('sha256').update(JSON.stringify(config)).digest('base64url'),
    context: createSecureContext(options),
    verify,
    serverName,
    names,
    alpn,
  }
  if (takesGatewayCertificate !== true) return settings
  return { ...settings, presenting: presenter(settings, options) }
}

/** Every Gateway has its own certificate, and many rules share one. */
function presenter(
  settings: TlsSettings,
  options: SecureContextOptions,
): (certificate: PresentedCertificate) => TlsSettings {
  let last: TlsSettings | undefined
  return ({ identity: certificate, chain, key }) => {
    const identity = `${settings.identity} ${certificate}`
    if (last?.identity === identity) return last
    const pair = { cert: Buffer.from(chain), key: Buffer.from(key) }
    last = { ...settings, identity, context: createSecureContext({ ...options, ...pair }) }
    return last
  }
}

let isSystemTrusted = false

/**
 * From here on, contexts of this thread without authorities of their own share those that the
 * machine trusts, or those that come with Node where it has none: parsed once, not per policy.
 */
function trustSystem(): undefined {
  if (isSystemTrusted) return
  isSystemTrusted = true
  setDefaultCACertificates(systemAuthorities())
}
