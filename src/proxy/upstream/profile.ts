/**
 * How a destination of one name is reached: what its policies settle, applied to addresses. A plain
 * address stays as it is; another one is made once for each address and kept.
 */
import type {
  ConnectionSettings,
  KeepaliveSettings,
  TlsSettings,
} from '../../exchange/connection.ts'
import { serverIdentity } from '../../tls-client/handshake.ts'
import type { UpstreamAddress, UpstreamTls } from '../engine/upstream/upstream-address.ts'
import { type NameEndpoints, NameRace } from './name-endpoints.ts'

export class UpstreamProfile {
  readonly scheme: 'http' | 'https'
  readonly #tls: UpstreamTls | undefined
  readonly #keepalive: KeepaliveSettings | undefined
  /** Appended to the identity of pools; empty where connections are plain. */
  readonly #suffix: string
  readonly #addresses = new WeakMap<UpstreamAddress, UpstreamAddress>()
  readonly #http2Addresses = new WeakMap<UpstreamAddress, UpstreamAddress>()
  readonly #races = noRaces()
  readonly #http2Races = noRaces()

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
  address(plain: UpstreamAddress, isHttp2 = false): UpstreamAddress {
    if (this.#suffix === '' && !isHttp2) return plain
    const known = isHttp2 ? this.#http2Addresses : this.#addresses
    let address = known.get(plain)
    if (address === undefined) {
      const tls = this.#tls && withAlpn(this.#tls, isHttp2)
      const keepalive = this.#keepalive
      const pool = `${plain.pool}${this.#suffix}${isHttp2 ? '|h2' : ''}`
      const more = { ...(tls && { tls }), ...(keepalive && { keepalive }) }
      address = { ...plain, pool, ...more, ...(isHttp2 && { isHttp2 }) }
      known.set(plain, address)
    }
    return address
  }

  /**
   * The race between addresses of a name; the same object for the same set and version. `isPatient`:
   * the first address is wanted as long as it can be reached.
   */
  race(endpoints: NameEndpoints, isHttp2: boolean, isPatient = false): NameRace | undefined {
    if (endpoints.all.length < 2) return undefined
    const known = (isHttp2 ? this.#http2Races : this.#races)[isPatient ? 'patient' : 'eager']
    let race = known.get(endpoints)
    if (race === undefined) {
      race = new NameRace(endpoints, (plain) => this.address(plain, isHttp2), isPatient)
      known.set(endpoints, race)
    }
    return race
  }
}

interface Races {
  readonly eager: WeakMap<NameEndpoints, NameRace>
  readonly patient: WeakMap<NameEndpoints, NameRace>
}

const noRaces = (): Races => ({ eager: new WeakMap(), patient: new WeakMap() })

/** What is offered where the user does not say. */
const defaultAlpn = ['h2', 'http/1.1']

/** A connection speaks the version that was settled on before it is made, so it offers no other. */
function withAlpn(tls: UpstreamTls, isHttp2: boolean): UpstreamTls {
  const alpn = isHttp2 ? ['h2'] : tls.alpn.filter((protocol) => protocol !== 'h2')
  return { ...tls, alpn }
}

function upstreamTls(settings: TlsSettings, host: string): UpstreamTls {
  const { context, alpn = defaultAlpn } = settings
  return { ...serverIdentity(settings, host), context, alpn, statedAlpn: settings.alpn ?? [] }
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
