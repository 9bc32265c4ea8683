/** How host names are looked up: as the machine is told to, with times from DNS where that answers. */
import { Resolver, lookup as systemLookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { interleave } from './name-endpoints.ts'

export interface Resolution {
  /** In the order in which they are to be tried. */
  readonly addresses: readonly string[]
  /** Milliseconds for which they hold. */
  readonly ttlMs: number
}

/** Rejects, or gives no addresses, where the name has none. */
export type Lookup = (host: string) => Promise<Resolution>

/** What the system's resolver says holds for so long: it tells no times. */
const systemTtlMs = 30_000

/**
 * The lookup of this machine. Names of the hosts file and names without a dot are the system's
 * resolver's, as are those that DNS does not know as they stand: search domains may make something
 * of them. `servers`: asked in place of the machine's, and then of the system's resolver, too.
 */
export function machineLookup(servers?: readonly string[]): Lookup {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  const isOurs = (name: string) => servers !== undefined || name.includes('.')
  return async (host) => {
    const name = host.replace(/\.$/, '')
    if ((await hostsFile()).has(name.toLowerCase()) || !isOurs(name)) return bySystem(host)
    const [six, four] = await Promise.allSettled([
      resolver.resolve6(name, { ttl: true }),
      resolver.resolve4(name, { ttl: true }),
    ])
    const ofSix = six.status === 'fulfilled' ? six.value : []
    const ofFour = four.status === 'fulfilled' ? four.value : []
    // The family that is to be tried first comes first (RFC 6724, RFC 8305 4).
    const isSixUsable = hasIpv6() || ofSix.every(({ address }) => address === '::1')
    const records = isSixUsable ? interleave(ofSix, ofFour) : interleave(ofFour, ofSix)
    if (records.length === 0) {
      if (servers === undefined) return bySystem(host)
      throw four.status === 'rejected' ? four.reason : new Error('no addresses')
    }
    const ttl = Math.min(...records.map((record) => record.ttl))
    return { addresses: records.map(({ address }) => address), ttlMs: ttl * 1_000 }
  }
}

async function bySystem(host: string): Promise<Resolution> {
  const found = await systemLookup(host, { all: true })
  return { addresses: [...new Set(found.map(({ address }) => address))], ttlMs: systemTtlMs }
}

/** Has the machine an IPv6 address that leads anywhere? */
function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((entries) =>
    entries?.some(
      ({ family, internal, address }) =>
        family === 'IPv6' && !internal && !address.toLowerCase().startsWith('fe80'),
    ),
  )
}

const hostsPath = process.platform === 'win32' ? '' : '/etc/hosts'

/** Names of the hosts file, in lower case; it is small, and kubelets rewrite it. */
async function hostsFile(): Promise<ReadonlySet<string>> {
  const text = hostsPath === '' ? '' : await readFile(hostsPath, 'utf8').catch(() => '')
  const names = text.split('\n').flatMap((line) => {
    const [address = '', ...named] = (line.split('#')[0] ?? '').trim().split(/\s+/)
    return isIP(address) === 0 ? [] : named.map((name) => name.toLowerCase())
  })
  return new Set(names)
}
