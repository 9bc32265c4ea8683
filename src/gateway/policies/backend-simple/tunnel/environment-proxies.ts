import { hash } from 'node:crypto'
import { serverIdentity } from '../../../../engines/tls-client/handshake.ts'
import {
  type ForwardProxies,
  type ForwardProxy,
  forwardProxyFor,
} from '../../../../ground/base/forward-proxies.ts'
import type { ProxySettings } from '../../../../ground/exchange/connection.ts'
import { machineTls } from '../tls/machine-tls.ts'

/** Returns the proxy for a connection; undefined if it is direct. */
export type ProxyFor = (isTls: boolean, host: string, port: number) => ProxySettings | undefined

/** Returns which connections use proxies of the environment. */
export function environmentProxies(proxies: ForwardProxies): ProxyFor {
  const known = new Map<ForwardProxy, ProxySettings>()
  return (isTls, host, port) => {
    const proxy = forwardProxyFor(proxies, isTls, host, port)
    if (proxy === undefined) return undefined
    let settings = known.get(proxy)
    if (settings === undefined) {
      settings = settingsOf(proxy)
      known.set(proxy, settings)
    }
    return settings
  }
}

function settingsOf(proxy: ForwardProxy): ProxySettings {
  const { scheme, host, port, credentials } = proxy
  return {
    identity: hash('sha256', JSON.stringify(proxy), 'base64url'),
    protocol: scheme === 'socks5' ? 'socks5' : 'http',
    host,
    port,
    ...(scheme === 'https' && { tls: tlsTo(host) }),
    ...(credentials && { credentials }),
  }
}

function tlsTo(host: string): NonNullable<ProxySettings['tls']> {
  const tls = machineTls()
  return { ...serverIdentity(tls, host), context: tls.context, alpn: ['http/1.1'] }
}
