import {
  type ForwardProxies,
  type ForwardProxy,
  forwardProxyFor,
} from '../../../../ground/base/forward-proxies.ts'
import type { ProxySettings } from '../../../../ground/exchange/connection.ts'
import { proxySettings } from './proxy-settings.ts'

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
      settings = proxySettings(proxy, proxy.credentials)
      known.set(proxy, settings)
    }
    return settings
  }
}
