import { networkInterfaces } from 'node:os'

/**
 * The address of a listener for clients: its own or, if it binds all, the first address of the machine that
 * others can reach, preferably IPv4.
 */
export function reachableAddress(bindAddress: string): string {
  if (bindAddress !== '0.0.0.0' && bindAddress !== '::') return bindAddress
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  const isOutside = ({ internal, address }: (typeof addresses)[number]) =>
    !internal && !address.startsWith('fe80:')
  const outside = addresses.filter(isOutside)
  const four = outside.find(({ family }) => family === 'IPv4')
  if (four !== undefined || bindAddress === '0.0.0.0') return four?.address ?? '127.0.0.1'
  return outside[0]?.address ?? '127.0.0.1'
}
