/**
 * Decides which addresses the gateway may connect to if others name them. Addresses are checked after resolution,
 * because a name or an unusual spelling of an address (`2852039166`) may stand for any address.
 */
import { BlockList } from 'node:net'

export interface DestinationRules {
  /** Addresses and CIDRs that are allowed although a default would refuse them. */
  readonly allow: readonly string[]
  /** Addresses and CIDRs that are refused besides the defaults. */
  readonly refuse: readonly string[]
  /** Allows loopback addresses. That is right for a gateway on a developer's machine, but wrong in a pod. */
  readonly loopback: boolean
}

/** Link-local addresses, and addresses of cloud metadata services, which hand out credentials. */
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
/** Connections to these addresses reach the machine itself, so they are refused if loopback is. */
const unspecified = ['0.0.0.0/8', '::']

/**
 * Addresses of internal networks, and addresses that no other machine on the Internet has (RFC 6890): private,
 * shared, benchmark, multicast and reserved ones, and Teredo, which contains an IPv4 address.
 */
const internalRanges = [
  ...unspecified,
  '10.0.0.0/8',
  '100.64.0.0/10',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '2001::/32',
  'fc00::/7',
  'fec0::/10',
  'ff00::/8',
]

/**
 * Like `destinationFilter`, for destinations that clients name. It refuses internal networks unless a rule allows them.
 * @throws RangeError
 */
export function clientDestinationFilter(rules: DestinationRules): (address: string) => boolean {
  return destinationFilter({ ...rules, refuse: [...internalRanges, ...rules.refuse] })
}

/** Returns a predicate over IP addresses. @throws RangeError if a rule is not an address or CIDR */
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

/** Returns a predicate that is true for IP addresses in the given ranges. @throws RangeError */
export function addressRanges(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) addRange(list, entry)
  return (address) => holds(list, address)
}

/** Family of an address. `isIP` would compile a pattern that takes 8 ms in each thread; the list checks. */
const familyOf = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4')

/** Whether the list has the address. False if the text is not an address. */
function holds(list: BlockList, address: string): boolean {
  const [bare = ''] = address.split('%', 1)
  return list.check(bare, familyOf(bare))
}

function addRange(list: BlockList, entry: string) {
  const [address = '', bits] = entry.split('/')
  const family = familyOf(address)
  const length = bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits)
  try {
    list.addSubnet(address, length, family)
  } catch {
    throw new RangeError(`${entry} is not an IP address or CIDR`)
  }
  return { address, family, length }
}

function blockList(entries: readonly string[]): BlockList {
  return addTo(new BlockList(), entries)
}

/** Prefixes of NAT64 (RFC 6052, RFC 8215): the last 32 bits are an IPv4 destination. */
const nat64 = ['64:ff9b::', '64:ff9b:1::']

/** Returns the 6to4 prefix (RFC 3056) of an IPv4 address. */
function sixToFour(address: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  return `2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::`
}

/**
 * Adds entries to a list. IPv4 entries also cover the IPv6 forms of their addresses. BlockList handles
 * IPv4-mapped addresses itself; NAT64 and 6to4 addresses are added here.
 */
function addTo(list: BlockList, entries: readonly string[]): BlockList {
  for (const entry of entries) {
    const { address, family, length } = addRange(list, entry)
    if (family !== 'ipv4') continue
    for (const prefix of nat64) list.addSubnet(`${prefix}${address}`, 96 + length, 'ipv6')
    list.addSubnet(sixToFour(address), 16 + length, 'ipv6')
  }
  return list
}
