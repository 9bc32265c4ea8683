import { createServer } from 'node:net'
import type { Server, ServerCredentials } from '@grpc/grpc-js'
import { hostAndPort, listenHost } from '../../ground/base/listen-hosts.ts'
import { cannotListen } from '../../ground/errors/listening.ts'

/**
 * Binds `host:port` or `:port` (all addresses). Resolves with the bound address, `host:port`. Rejects with
 * `port_in_use` or `address_unusable` if that fails.
 */
export async function bind(
  server: Server,
  address: string,
  credentials: ServerCredentials,
): Promise<string> {
  // Checked first: the gRPC library would write to standard error and hide the error code in its message.
  await assertFree(address)
  const { host, port } = await splitAddress(address)
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(hostAndPort(host, port), credentials, (error, number) => {
      if (error === null) resolve(number)
      else reject(cannotListen('xds', address, error))
    })
  })
  return hostAndPort(host, bound)
}

/** Checks that an address can be bound. Rejects with `port_in_use` or `address_unusable` if not. */
export async function assertFree(address: string): Promise<void> {
  const { host, port } = await splitAddress(address)
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(cannotListen('xds', address, error)))
    server.listen({ port, host }, () => server.close(() => resolve()))
  })
}

/** Splits an address. Without a host (`:9978`), it means all addresses; IPv6 addresses are in brackets. */
async function splitAddress(address: string) {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return { host: await listenHost(host), port: Number(address.slice(colon + 1)) }
}
