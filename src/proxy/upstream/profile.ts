/**
 * How a destination of one name is reached: what its policies settle, applied to addresses. A plain
 * address stays as it is; another one is made once for each address and kept.
 */
import type { UpstreamAddress, UpstreamTls } from '../../engine/sockets/upstream-address.ts'
import type {
  ConnectionSettings,
  KeepaliveSettings,
  TlsSettings,
  UpstreamVersion,
} from '../../exchange/connection.ts'
import { serverIdentity } from '../../tls-client/handshake.ts'
import { type NameEndpoints, NameRace } from './name-endpoints.ts'

class UpstreamProfile {
  readonly scheme: 'http' | 'https'
  readonly #tls: UpstreamTls | undefined
  readonly #keepalive: KeepaliveSettings | undefined
  /** Appended to the identity of pools; empty where connections are plain. */
  readonly #suffix: string
  readonly #known: Readonly<Record<UpstreamVersion, KnownAddresses>> = {
    '1.1': noAddresses(),
    '2': noAddresses(),
    negotiated: noAddresses(),
  }

  /** `host`: what the destination is called, which TLS sends and verifies by default. */
  constructor({ tls, keepalive }: ConnectionSettings, host: string) {
    this.scheme = tls === undefined ? 'http' : 'https'
    this.#tls = tls && upstreamTls(tls, host)
    this.#keepalive = keepalive
    const parts: string[] = []
    if (this.#tls !== undefined) parts.push(`tls ${tls?.identity} ${this.#tls.serverName}`)
    if (keepalive !== undefined) parts.push(`keepalive ${Object.values(keepalive).join(' ')}`)
    this.#suffix = parts.map((part) => `|${part}`).join('')
  }

  /** The address as it is connected to; the same object for the same plain address and version. */
  address(plain: UpstreamAddress, version: UpstreamVersion = '1.1'): UpstreamAddress {
    if (this.#suffix === '' && version === '1.1') return plain
    const known = this.#known[version].addresses
    let address = known.get(plain)
    if (address === undefined) {
      const tls = this.#tls && { ...this.#tls, alpn: offered(this.#tls.statedAlpn, version) }
      const keepalive = this.#keepalive
      const { suffix, ...speaks } = ways[version]
      const pool = `${plain.pool}${this.#suffix}${suffix}`
      address = { ...plain, pool, ...(tls && { tls }), ...(keepalive && { keepalive }), ...speaks }
      known.set(plain, address)
    }
    return address
  }

  /**
   * The race between addresses of a name; the same object for the same set and version. `isPatient`:
   * the first address is wanted as long as it can be reached.
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

/** The addresses that are reached in one version, and the races between them. */
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

/** What an address says of its version. `suffix`: of the identity of its pool. */
const ways = {
  '1.1': { suffix: '' },
  '2': { suffix: '|h2', isHttp2: true },
  negotiated: { suffix: '|alpn', negotiates: true },
}

/**
 * The application protocols that a connection offers: those that the user lists, in that order. If
 * the version is settled before the handshake, a list that contradicts it is changed: HTTP/1.1 never
 * offers h2, which the server would select, and HTTP/2 always offers it.
 */
function offered(stated: readonly string[], version: UpstreamVersion): readonly string[] {
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

/** Names that one set of policies keeps profiles of; clients choose names of dynamic destinations. */
const keptNames = 1_000

/** Profiles of what one merged set of backend policies covers. */
export class UpstreamProfiles {
  readonly #settings: ConnectionSettings
  #byHost: Map<string, UpstreamProfile> | undefined
  readonly #isPlain: boolean

  constructor(settings: ConnectionSettings) {
    this.#settings = settings
    this.#isPlain = settings.tls === undefined && settings.keepalive === undefined
  }

  of(host: string): UpstreamProfile {
    if (this.#isPlain) return plainProfile
    this.#byHost ??= new Map()
    let profile = this.#byHost.get(host)
    if (profile === undefined) {
      profile = new UpstreamProfile(this.#settings, host)
      if (this.#byHost.size >= keptNames) this.#byHost.clear()
      this.#byHost.set(host, profile)
    }
    return profile
  }
}
