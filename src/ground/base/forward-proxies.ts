/** The proxies for outgoing connections that HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment name. */
import { isIP } from 'node:net'
import { bareHost } from './bare-host.ts'
import { withoutRootDot } from './root-dot.ts'

export interface ForwardProxy {
  readonly scheme: 'http' | 'https' | 'socks5'
  readonly host: string
  readonly port: number
  readonly credentials?: { readonly username: string; readonly password: string }
}

export interface ForwardProxies {
  /** The proxy for connections with TLS, and the one for other connections. */
  readonly https?: ForwardProxy
  readonly http?: ForwardProxy
  /** Hosts that are connected to directly. */
  readonly except: readonly DirectHosts[]
}

interface DirectHosts {
  /** In lower case; `*` means every host. Subdomains are connected to directly, too. */
  readonly name: string
  /** If omitted, all ports. */
  readonly port?: number
}

type Environment = Readonly<Record<string, string | undefined>>

const defaultPorts = { http: 80, https: 443, socks5: 1080 } as const
const schemes = new Map<string, ForwardProxy['scheme']>([
  ['http:', 'http'],
  ['https:', 'https'],
  ['socks5:', 'socks5'],
  ['socks5h:', 'socks5'],
])

/**
 * Reads the variables. Those in lower case win. Returns undefined if no proxy is set.
 *
 * @throws Error for operators if a variable is not the URL of a proxy
 */
export function readForwardProxies(env: Environment): ForwardProxies | undefined {
  const https = readProxy(env, 'HTTPS_PROXY')
  const http = readProxy(env, 'HTTP_PROXY')
  if (https === undefined && http === undefined) return undefined
  const except = (variable(env, 'NO_PROXY') ?? '').split(/[\s,]+/).filter((entry) => entry !== '')
  return { ...(https && { https }), ...(http && { http }), except: except.map(directHosts) }
}

const variable = (env: Environment, name: string): string | undefined =>
  env[name.toLowerCase()] || env[name] || undefined

function readProxy(env: Environment, name: string): ForwardProxy | undefined {
  const text = variable(env, name)?.trim()
  if (text === undefined || text === '') return undefined
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  const scheme = schemes.get(url?.protocol ?? '')
  // The message does not contain the value, which may have a password.
  if (url === null || scheme === undefined || url.hostname === '') {
    throw new Error(`${name} is not the URL of an HTTP or SOCKS 5 proxy`)
  }
  const { username, password } = url
  const credentials = { username: decode(username), password: decode(password) }
  return {
    scheme,
    host: bareHost(url.hostname),
    port: url.port === '' ? defaultPorts[scheme] : Number(url.port),
    ...(username !== '' && { credentials }),
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function directHosts(entry: string): DirectHosts {
  const [, name = entry, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(entry) ?? []
  const bare = withoutRootDot(name.toLowerCase().replace(/^\*?\./, ''))
  return { name: bare, ...(port !== undefined && { port: Number(port) }) }
}

/** Names that never leave the network of the gateway: those of clusters, of machines, and of metadata services. */
const insideNames = /^(?:[^.]+|.*\.(?:svc|local|localhost|internal))$/
/** Other spellings of addresses, such as `0x7f.1` and `2130706433`. */
const numericEnd = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/

/**
 * Returns the proxy for a connection to a host that the configuration names; undefined if it is direct. IP addresses
 * and names inside the network are always connected to directly.
 */
export function forwardProxyFor(
  proxies: ForwardProxies,
  isTls: boolean,
  host: string,
  port: number,
): ForwardProxy | undefined {
  const name = withoutRootDot(host).toLowerCase()
  if (isIP(name) !== 0 || insideNames.test(name) || numericEnd.test(name)) return undefined
  const isDirect = proxies.except.some(
    (direct) => (direct.port ?? port) === port && covers(direct.name, name),
  )
  return isDirect ? undefined : isTls ? proxies.https : proxies.http
}

const covers = (direct: string, name: string): boolean =>
  direct === '*' || name === direct || name.endsWith(`.${direct}`)
