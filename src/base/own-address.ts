import { networkInterfaces } from 'node:os'

/** Where clients reach what is bound: the address itself, or the machine's first where all are. */
export function reachableAddress(bindAddress: string): string {
  if (bindAddress !== '0.0.0.0' && bindAddress !== '::') return bindAddress
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return (
    addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'
  )
}
