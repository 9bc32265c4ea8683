import { BlockList, isIP } from 'node:net'

/** A predicate over IP literals; throws a RangeError where an entry is no address or CIDR. */
export function addressRanges(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const family = isIP(address)
    if (family === 0) throw new RangeError(`${entry} is not an IP address or CIDR`)
    const length = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits)
    list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) => {
    const bare = address.split('%')[0] ?? address
    const family = isIP(bare)
    return family !== 0 && list.check(bare, family === 4 ? 'ipv4' : 'ipv6')
  }
}
