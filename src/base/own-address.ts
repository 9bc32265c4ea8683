import { networkInterfaces } from 'node:os'

/** The address of a listener for clients: its own or, if it binds all, the machine's first IPv4 address. */
export function reachableAddress(bindAddress: string): string {
  if (bindAddress !== '0.0.0.0' && bindAddress !== '::') return bindAddress
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return (
    addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'
  )
}
