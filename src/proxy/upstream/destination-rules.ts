/**
 * Which resolved addresses a dynamic forward proxy may reach. Checked after resolution, because a
 * name or an odd spelling of a number (`2852039166`) may lead anywhere.
 */
import { BlockList, isIP } from 'node:net'

export interface DestinationRules {
  /** CIDRs or addresses that are allowed although a default would refuse them. */
  readonly allow: readonly string[]
  /** CIDRs or addresses that are refused as well. */
  readonly refuse: readonly string[]
  /** Loopback may be reached: right for a gateway on one's own machine, wrong inside a pod. */
  readonly loopback: boolean
}

/** Link-local, and where cloud providers serve credentials to whoever asks from inside. */
const alwaysRefused = [
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd20:ce::254',
]
const loopbackRanges = ['127.0.0.0/8', '::1']
/** These connect to the own machine as well, and so may not be reached where loopback may not. */
const unspecified = ['0.0.0.0/8', '::']

/** A predicate over IP literals; throws a RangeError where a rule is not an address or CIDR. */
export function destinationFilter(rules: DestinationRules): (address: string) => boolean {
  const allowed = blockList(rules.allow)
  const refused = blockList([
    ...alwaysRefused,
    ...(rules.loopback ? [] : loopbackRanges),
    ...rules.refuse,
  ])
  if (holds(refused, '127.0.0.1') || holds(refused, '::1')) addTo(refused, unspecified)
  return (address) => holds(allowed, address) || !holds(refused, address)
}

function holds(list: BlockList, address: string): boolean {
  const bare = address.split('%')[0] ?? address
  return list.check(bare, isIP(bare) === 4 ? 'ipv4' : 'ipv6')
}

function blockList(entries: readonly string[]): BlockList {
  return addTo(new BlockList(), entries)
}

/** Prefixes of NAT64 (RFC 6052, RFC 8215): the last 32 bits are an IPv4 destination. */
const nat64 = ['64:ff9b::', '64:ff9b:1::']

/** The 6to4 prefix (RFC 3056) of an IPv4 address. */
function sixToFour(address: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  return `2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::`
}

/** IPv4 entries cover their IPv6 spellings: BlockList knows the mapped ones, others are added. */
function addTo(list: BlockList, entries: readonly string[]): BlockList {
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIP(address)
    if (family === 0) throw new RangeError(`${entry} is not an IP address or CIDR`)
    const length = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits)
    list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6')
    if (family !== 4) continue
    for (const prefix of nat64) list.addSubnet(`${prefix}${address}`, 96 + length, 'ipv6')
    list.addSubnet(sixToFour(address), 16 + length, 'ipv6')
  }
  return list
}
