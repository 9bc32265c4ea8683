import { createHash } from 'node:crypto'
import {
  createSecureContext,
  getCACertificates,
  type SecureContextOptions,
  setDefaultCACertificates,
} from 'node:tls'
import type { PresentedCertificate, TlsSettings } from '../../../exchange/connection.ts'
import type { SecretValues } from '../../../exchange/exchange.ts'
import type { PolicyApply } from '../../define.ts'
import type { BackendTlsConfig } from './config.ts'

const apply: PolicyApply<BackendTlsConfig> = {
  bind: (config, _callouts, secrets) => ({ connection: { tls: settingsOf(config, secrets) } }),
}

export default apply

/** Throws where a value has not arrived, or OpenSSL refuses one. */
export function settingsOf(config: BackendTlsConfig, secrets: SecretValues): TlsSettings {
  const { verify, serverName, names, alpn, takesGatewayCertificate } = config
  const options = contextOptions(config, secrets)
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

/** TLS 1.2 and 1.3 only (RFC 8996). */
function contextOptions(config: BackendTlsConfig, secrets: SecretValues): SecureContextOptions {
  const { authorities, authoritiesDigest, certificate, verify } = config
  const text = (digest: string) => Buffer.from(secrets.value(digest))
  const given = authoritiesDigest === undefined ? authorities : text(authoritiesDigest)
  if (verify !== 'none' && given === undefined) trustSystem()
  return {
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.3',
    ...(given !== undefined && { ca: given }),
    ...(certificate && { cert: text(certificate.chain), key: text(certificate.key) }),
  }
}

let isSystemTrusted = false

/**
 * From here on, contexts of this thread without authorities of their own share those that the
 * machine trusts, or those that come with Node where it has none: parsed once, not per policy.
 */
function trustSystem(): void {
  if (isSystemTrusted) return
  isSystemTrusted = true
  const found = new Set([...getCACertificates('system'), ...getCACertificates('extra')])
  setDefaultCACertificates(found.size > 0 ? [...found] : getCACertificates('bundled'))
}
