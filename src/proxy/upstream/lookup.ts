/** How host names are looked up: as the machine is told to, with times from DNS where that answers. */
import { Resolver, lookup as systemLookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

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
 * of them.
 */
export function machineLookup(): Lookup {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  return async (host) => {
    const name = host.replace(/\.$/, '')
    if (!name.includes('.') || (await hostsFile()).has(name.toLowerCase())) return bySystem(host)
    const [six, four] = await Promise.allSettled([
      resolver.resolve6(name, { ttl: true }),
      resolver.resolve4(name, { ttl: true }),
    ])
    const ofSix = six.status === 'fulfilled' ? six.value : []
    const ofFour = four.status === 'fulfilled' ? four.value : []
    const records = hasIpv6() ? interleave(ofSix, ofFour) : [...ofFour, ...ofSix]
    if (records.length === 0) return bySystem(host)
    const ttl = Math.min(...records.map((record) => record.ttl))
    return { addresses: records.map(({ address }) => address), ttlMs: ttl * 1_000 }
  }
}

async function bySystem(host: string): Promise<Resolution> {
  const found = await systemLookup(host, { all: true })
  return { addresses: [...new Set(found.map(({ address }) => address))], ttlMs: systemTtlMs }
}

/** One family after the other, so that the next address tried is of the other one (RFC 8305 4). */
function interleave<Item>(first: readonly Item[], second: readonly Item[]): Item[] {
  const mixed: Item[] = []
  for (let at = 0; at < Math.max(first.length, second.length); at++) {
    mixed.push(...first.slice(at, at + 1), ...second.slice(at, at + 1))
  }
  return mixed
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
