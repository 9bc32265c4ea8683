/** Looks up host names as the machine is configured. Results of DNS have its TTL. */
import { lookup as systemLookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout as after } from 'node:timers/promises'
import { interleave } from './name-endpoints.ts'
import { type AddressRecord, NameServers } from './name-servers.ts'

export interface Resolution {
  /** Addresses in the order in which to try them. */
  readonly addresses: readonly string[]
  readonly ttlMs: number
  /** Set if one family has not been answered yet: resolves with the addresses of both, and never rejects. */
  readonly complete?: Promise<Resolution>
}

/** Looks up a host name. If it has no address, rejects or returns an empty list. */
export type Lookup = (host: string) => Promise<Resolution>

/** How long one family waits for the other (RFC 8305, section 3). */
const resolutionDelayMs = 50
/** TTL of results of the system's resolver, which reports none. */
const systemTtlMs = 30_000

/**
 * Makes the lookup of this machine. The system's resolver is used for names in the hosts file, names without
 * a dot, and names that DNS does not know, because search domains may apply. `servers` are DNS servers that
 * replace those of the machine and the system's resolver.
 */
export function machineLookup(servers?: readonly string[]): Lookup {
  const nameServers = new NameServers(servers)
  const isOurs = (name: string) => servers !== undefined || name.includes('.')
  return async (host) => {
    const name = host.replace(/\.$/, '')
    if ((await hostsFile()).has(name.toLowerCase()) || !isOurs(name)) return bySystem(host)
    const six = nameServers.ask(name, 'AAAA')
    const four = nameServers.ask(name, 'A')
    const both = Promise.allSettled([six, four])
    const early = await firstUsable(six, four, both)
    const complete = both.then(([ofSix, ofFour]) =>
      toResolution(recordsOf(ofSix), recordsOf(ofFour)),
    )
    if (early !== undefined) {
      return { ...early, complete: complete.then((found) => found ?? early) }
    }
    const found = await complete
    if (found !== undefined) return found
    if (servers === undefined) return bySystem(host)
    return four.then(() => {
      throw new Error('no addresses')
    })
  }
}

type Records = readonly AddressRecord[]

/**
 * The addresses of one family if the other one is late. Undefined if both are answered in time, or if only
 * addresses of a family that the machine cannot use are known.
 */
async function firstUsable(
  six: Promise<Records>,
  four: Promise<Records>,
  both: Promise<unknown>,
): Promise<Resolution | undefined> {
  const ofSix = six.then((records) => usable(hasIpv6() ? toResolution(records, []) : undefined))
  const ofFour = four.then((records) => usable(toResolution([], records)))
  try {
    const first = await Promise.any([ofSix, ofFour])
    const isComplete = await Promise.race([both.then(() => true), after(resolutionDelayMs, false)])
    return isComplete ? undefined : first
  } catch {
    return undefined
  }
}

function usable(found: Resolution | undefined): Resolution {
  if (found === undefined) throw new Error('no usable address')
  return found
}

const recordsOf = (settled: PromiseSettledResult<Records>): Records =>
  settled.status === 'fulfilled' ? settled.value : []

/** Addresses of the preferred family come first (RFC 6724, RFC 8305 4). Undefined if there are none. */
function toResolution(six: Records, four: Records): Resolution | undefined {
  const isSixUsable = hasIpv6() || six.every(({ address }) => address === '::1')
  const records = isSixUsable ? interleave(six, four) : interleave(four, six)
  if (records.length === 0) return undefined
  const ttl = Math.min(...records.map((record) => record.ttl))
  return { addresses: records.map(({ address }) => address), ttlMs: ttl * 1_000 }
}

async function bySystem(host: string): Promise<Resolution> {
  const found = await systemLookup(host, { all: true })
  return { addresses: [...new Set(found.map(({ address }) => address))], ttlMs: systemTtlMs }
}

/** Returns whether the machine has a routable IPv6 address. */
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
