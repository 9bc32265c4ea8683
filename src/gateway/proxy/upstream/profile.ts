/** Applies the connection settings of policies to addresses. Each resulting address is made once. */
import type {
  UpstreamAddress,
  UpstreamTls,
} from '../../../engines/http/sockets/upstream-address.ts'
import { serverIdentity } from '../../../engines/tls-client/handshake.ts'
import type {
  ConnectionSettings,
  KeepaliveSettings,
  ProxySettings,
  TlsSettings,
  UpstreamVersion,
} from '../../../ground/exchange/connection.ts'
import { type NameEndpoints, NameRace } from './name-endpoints.ts'

class UpstreamProfile {
  readonly scheme: 'http' | 'https'
  readonly #tls: UpstreamTls | undefined
  readonly #keepalive: KeepaliveSettings | undefined
  readonly #proxy: ProxySettings | undefined
  /** Appended to the key of connection pools; empty for plaintext connections. */
  readonly #suffix: string
  readonly #known: Readonly<Record<UpstreamVersion, KnownAddresses>> = {
    '1.1': noAddresses(),
    '2': noAddresses(),
    negotiated: noAddresses(),
  }

  /** `host` is the name of the destination, which TLS sends and verifies by default. */
  constructor({ tls, keepalive, tunnel }: ConnectionSettings, host: string) {
    this.scheme = tls === undefined ? 'http' : 'https'
    this.#tls = tls && upstreamTls(tls, host)
    this.#keepalive = keepalive
    this.#proxy = tunnel
    const parts: string[] = []
    if (this.#tls !== undefined) parts.push(`tls ${tls?.identity} ${this.#tls.serverName}`)
    if (keepalive !== undefined) parts.push(`keepalive ${Object.values(keepalive).join(' ')}`)
    if (tunnel !== undefined) parts.push(`via ${tunnel.identity}`)
    this.#suffix = parts.map((part) => `|${part}`).join('')
  }

  /** Returns an address with the settings. It is the same object for the same plain address and version. */
  address(plain: UpstreamAddress, version: UpstreamVersion = '1.1'): UpstreamAddress {
    if (this.#suffix === '' && version === '1.1') return plain
    const known = this.#known[version].addresses
    let address = known.get(plain)
    if (address === undefined) {
      const tls = this.#tls && { ...this.#tls, alpn: alpnFor(this.#tls.statedAlpn, version) }
      const keepalive = this.#keepalive
      const via = this.#proxy
      const { suffix, ...properties } = byVersion[version]
      const pool = `${plain.pool}${this.#suffix}${suffix}`
      address = {
        ...plain,
        pool,
        ...(tls && { tls }),
        ...(keepalive && { keepalive }),
        ...(via && { via }),
        ...properties,
      }
      known.set(plain, address)
    }
    return address
  }

  /**
   * Returns the race between the addresses of a host name. It is the same object for the same addresses and
   * version. If `isPatient`, another address is only used if the first one cannot be reached.
   */
  race(
    endpoints: NameEndpoints,
    version: UpstreamVersion,
    isPatient = false,
  ): NameRace | undefined {
    if (endpoints.all.length < 2) return undefined
    const known = this.#known[version][isPatient ? 'patient' : 'eager']
    let race = known.get(endpoints)
    if (race === undefined) {
      race = new NameRace(endpoints, (plain) => this.address(plain, version), isPatient)
      known.set(endpoints, race)
    }
    return race
  }
}

/** The addresses and races of one version. */
interface KnownAddresses {
  readonly addresses: WeakMap<UpstreamAddress, UpstreamAddress>
  readonly eager: WeakMap<NameEndpoints, NameRace>
  readonly patient: WeakMap<NameEndpoints, NameRace>
}

const noAddresses = (): KnownAddresses => ({
  addresses: new WeakMap(),
  eager: new WeakMap(),
  patient: new WeakMap(),
})

/** Properties of addresses, and the suffix of their pool keys, by version. */
const byVersion = {
  '1.1': { suffix: '' },
  '2': { suffix: '|h2', isHttp2: true },
  negotiated: { suffix: '|alpn', negotiates: true },
}

/**
 * Returns the ALPN protocols that a connection offers: those that the policy sets, in order. If the version
 * is fixed to HTTP/1.1, h2 is never offered, because the server would select it. For HTTP/2, h2 is always
 * offered.
 */
function alpnFor(stated: readonly string[], version: UpstreamVersion): readonly string[] {
  if (version === 'negotiated') return stated
  if (version === '2') return stated.includes('h2') ? stated : ['h2']
  return stated.length === 0 ? ['http/1.1'] : stated.filter((protocol) => protocol !== 'h2')
}

function upstreamTls(settings: TlsSettings, host: string): UpstreamTls {
  const { context, alpn = [] } = settings
  return { ...serverIdentity(settings, host), context, alpn, statedAlpn: alpn }
}

const plain: ConnectionSettings = {}
const plainProfile = new UpstreamProfile(plain, '')

/** Maximum number of cached profiles, because clients choose the names of dynamic destinations. */
const maxProfiles = 1_000

/** The connection profiles of one set of merged backend policies, by host. */
export class UpstreamProfiles {
  readonly #settings: ConnectionSettings
  #byHost: Map<string, UpstreamProfile> | undefined
  readonly #isPlain: boolean

  constructor(settings: ConnectionSettings) {
    this.#settings = settings
    const { tls, keepalive, tunnel } = settings
    this.#isPlain = tls === undefined && keepalive === undefined && tunnel === undefined
  }

  of(host: string): UpstreamProfile {
    if (this.#isPlain) return plainProfile
    this.#byHost ??= new Map()
    let profile = this.#byHost.get(host)
    if (profile === undefined) {
      profile = new UpstreamProfile(this.#settings, host)
      if (this.#byHost.size >= maxProfiles) this.#byHost.clear()
      this.#byHost.set(host, profile)
    }
    return profile
  }
}
