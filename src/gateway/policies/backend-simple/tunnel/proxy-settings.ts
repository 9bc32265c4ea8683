import { hash } from 'node:crypto'
import { serverIdentity } from '../../../../engines/tls-client/handshake.ts'
import type { ProxySettings } from '../../../../ground/exchange/connection.ts'
import { machineTls } from '../tls/machine-tls.ts'

interface ProxyPlace {
  readonly scheme: 'http' | 'https' | 'socks5'
  readonly host: string
  readonly port: number
}

/** Returns how a proxy is used. `place` identifies it, so it must have the credentials or their digests. */
export function proxySettings(
  place: ProxyPlace,
  credentials: ProxySettings['credentials'],
): ProxySettings {
  const { scheme, host, port } = place
  return {
    identity: hash('sha256', JSON.stringify(place), 'base64url'),
    protocol: scheme === 'socks5' ? 'socks5' : 'http',
    host,
    port,
    ...(scheme === 'https' && { tls: tlsTo(host) }),
    ...(credentials && { credentials }),
  }
}

/** The certificate of the proxy must be signed by a CA that the machine trusts. */
function tlsTo(host: string): NonNullable<ProxySettings['tls']> {
  const tls = machineTls()
  return { ...serverIdentity(tls, host), context: tls.context, alpn: ['http/1.1'] }
}
