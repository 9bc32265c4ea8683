/**
 * Checks the URLs to which clients let agents send notifications. The agent sends them from its network, so a client could
 * use it to reach internal services.
 */
import { BlockList, isIP } from 'node:net'
import { addressRanges } from '../../../../ground/base/destination-rules.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'

interface PushRules {
  readonly hosts: readonly string[]
  readonly addresses: readonly string[]
  readonly allowHttp: boolean
}

/** Addresses that are not public: private, shared, loopback, link-local, documentation, multicast and reserved ones. */
const notPublic = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const

const publicV6 = new BlockList()
publicV6.addSubnet('2000::', 3, 'ipv6')
const refusedV4 = new BlockList()
for (const [address, bits] of notPublic) refusedV4.addSubnet(address, bits, 'ipv4')
/** Within 2000::/3: Teredo, documentation and 6to4, of which the latter stand for IPv4 addresses. */
const refusedV6 = new BlockList()
refusedV6.addSubnet('2001::', 23, 'ipv6')
refusedV6.addSubnet('2001:db8::', 32, 'ipv6')
refusedV6.addSubnet('2002::', 16, 'ipv6')
refusedV6.addSubnet('3fff::', 20, 'ipv6')

function isPublic(address: string): boolean {
  if (!address.includes(':')) return !refusedV4.check(address, 'ipv4')
  const [bare = ''] = address.split('%', 1)
  return publicV6.check(bare, 'ipv6') && !refusedV6.check(bare, 'ipv6')
}

type Resolve = (host: string) => readonly string[] | Promise<readonly string[]>

/** The rules of one backend. */
export class PushUrlCheck {
  readonly #hosts: ReadonlySet<string>
  readonly #allowHttp: boolean
  readonly #isAllowed: (address: string) => boolean

  constructor({ hosts, addresses, allowHttp }: PushRules) {
    this.#hosts = new Set(hosts)
    this.#allowHttp = allowHttp
    const allowed = addressRanges(addresses)
    this.#isAllowed = (address) => allowed(address) || isPublic(address)
  }

  /** Returns why notifications must not go to a URL; undefined if they may. Never contains credentials of the URL. */
  async problem(value: unknown, resolve: Resolve): Promise<string | undefined> {
    if (typeof value !== 'string' || !URL.canParse(value)) return 'it is not a URL'
    const { protocol, hostname, username, password } = new URL(value)
    if (protocol !== 'https:' && !(protocol === 'http:' && this.#allowHttp)) {
      return 'its scheme is not https'
    }
    if (username !== '' || password !== '') return 'it has credentials'
    const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
    if (this.#hosts.size > 0 && !this.#hosts.has(host)) return 'its host is not allowed'
    let addresses: readonly string[]
    try {
      addresses = await resolve(host)
    } catch {
      return 'its host cannot be resolved'
    }
    const isRefused = addresses.length === 0 || !addresses.every(this.#isAllowed)
    return isRefused ? 'its address is not public' : undefined
  }
}

/** Returns all addresses of a host. */
export const resolveAll = (
  { resolver }: Pick<GatewayRuntime, 'resolver'>,
  host: string,
): readonly string[] | Promise<readonly string[]> =>
  isIP(host) === 0 ? resolver.hosts.allAddresses(host) : [host]
