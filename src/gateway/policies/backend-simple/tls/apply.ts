import { hash } from 'node:crypto'
import { createSecureContext, type SecureContextOptions, setDefaultCACertificates } from 'node:tls'
import { contextOptions, systemAuthorities } from '../../../../engines/tls-client/context.ts'
import { choice, list, optional, record, text } from '../../../../ground/base/shape.ts'
import type { PresentedCertificate, TlsSettings } from '../../../../ground/exchange/connection.ts'
import type { SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { BackendTlsConfig } from '../../../../ground/model/backend-tls.ts'
import type { PolicyApply } from '../../define.ts'

export const shape = record<BackendTlsConfig>({
  authorities: optional(text),
  authoritiesDigest: optional(text),
  certificate: optional(
    record<NonNullable<BackendTlsConfig['certificate']>>({ chain: text, key: text }),
  ),
  takesGatewayCertificate: optional(choice(true)),
  verify: choice('full', 'issuer', 'none'),
  serverName: optional(text),
  names: optional(list(text)),
  alpn: optional(list(text)),
})

const apply: PolicyApply<BackendTlsConfig> = {
  shape,
  bind: (config, _callouts, secrets) => ({ connection: { tls: settingsOf(config, secrets) } }),
}

export default apply

/** Throws if a secret value has not been received, or if OpenSSL rejects a value. */
export function settingsOf(config: BackendTlsConfig, secrets: SecretValues): TlsSettings {
  const { verify, serverName, names, alpn, takesGatewayCertificate } = config
  const options = contextOptions(config, (digest) => secrets.value(digest), trustSystem)
  const settings: TlsSettings = {
    // The config contains digests of secrets, so it identifies their values too.
    identity: hash('sha256', JSON.stringify(config), 'base64url'),
    context: createSecureContext(options),
    verify,
    serverName,
    names,
    alpn,
  }
  if (takesGatewayCertificate !== true) return settings
  return { ...settings, presenting: presenter(settings, options) }
}

/** Caches the settings for the last certificate: each Gateway has one, which many rules use. */
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
 * Makes contexts without CA certificates use those of the machine, or those of Node if the machine has
 * none. They are parsed once per thread, not once per policy.
 */
function trustSystem(): undefined {
  if (isSystemTrusted) return
  isSystemTrusted = true
  setDefaultCACertificates(systemAuthorities())
}
