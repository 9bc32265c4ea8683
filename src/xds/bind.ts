/** Where the configuration server listens. */
import { createServer } from 'node:net'
import type { Server, ServerCredentials } from '@grpc/grpc-js'
import { cannotListen } from '../errors/listening.ts'

/**
 * Binds `host:port` or `:port` (all addresses); resolves with what was bound, `host:port`. Rejects
 * with `port_in_use` or `address_unusable` where it cannot be bound.
 */
export async function bind(
  server: Server,
  address: string,
  credentials: ServerCredentials,
): Promise<string> {
  // The library writes to standard error itself and keeps the system's code in its text alone.
  await assertFree(address)
  const [host, port] = splitAddress(address)
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, credentials, (error, number) => {
      if (error === null) resolve(number)
      else reject(cannotListen('xds', address, error))
    })
  })
  return `${host}:${bound}`
}

/**
 * Listens for a moment. Rejects with `port_in_use` or `address_unusable` where the address cannot be
 * bound.
 */
export function assertFree(address: string): Promise<void> {
  const [host, port] = splitAddress(address)
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(cannotListen('xds', address, error)))
    server.listen(Number(port), host.replace(/^\[|\]$/g, ''), () => server.close(() => resolve()))
  })
}

/** `:9978` is all addresses; an IPv6 address stands in brackets. */
function splitAddress(address: string): readonly [host: string, port: string] {
  const place = address.lastIndexOf(':')
  const host = address.slice(0, place)
  return [host === '' ? '[::]' : host, address.slice(place + 1)]
}
