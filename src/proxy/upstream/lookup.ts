/** Looks up host names as the machine is configured. Results of DNS have its TTL. */
import { Resolver, lookup as systemLookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { interleave } from './name-endpoints.ts'

export interface Resolution {
  /** Addresses in the order in which to try them. */
  readonly addresses: readonly string[]
  readonly ttlMs: number
}

/** Looks up a host name. If it has no address, rejects or returns an empty list. */
export type Lookup = (host: string) => Promise<Resolution>

/** TTL of results of the system's resolver, which reports none. */
const systemTtlMs = 30_000

/**
 * Makes the lookup of this machine. The system's resolver is used for names in the hosts file, names without
 * a dot, and names that DNS does not know, because search domains may apply. `servers` are DNS servers that
 * replace those of the machine and the system's resolver.
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
    // Addresses of the preferred family come first (RFC 6724, RFC 8305 4).
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

/** Does the machine have a routable IPv6 address? */
function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((entries) =>
    entries?.some(
      ({ family, internal, address }) =>
        family === 'IPv6' && !internal && !address.toLowerCase().startsWith('fe80'),
    ),
  )
}

const hostsPath = process.platform === 'win32' ? '' : '/etc/hosts'

/**
 * Returns the names in the hosts file in lower case. The file is read each time, because kubelets rewrite
 * it.
 */
async function hostsFile(): Promise<ReadonlySet<string>> {
  const text = hostsPath === '' ? '' : await readFile(hostsPath, 'utf8').catch(() => '')
  const names = text.split('\n').flatMap((line) => {
    const [address = '', ...named] = (line.split('#')[0] ?? '').trim().split(/\s+/)
    return isIP(address) === 0 ? [] : named.map((name) => name.toLowerCase())
  })
  return new Set(names)
}
