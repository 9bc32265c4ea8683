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
  const [host, port] = splitAddress(address)
  // The library writes to standard error itself and keeps the system's code in its text alone.
  await probe(host, port).catch((error) => {
    throw cannotListen('xds', address, error)
  })
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, credentials, (error, number) => {
      if (error === null) resolve(number)
      else reject(cannotListen('xds', address, error))
    })
  })
  return `${host}:${bound}`
}

/** Listens for a moment. Rejects with the system's error. */
function probe(host: string, port: string): Promise<void> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(Number(port), host.replace(/^\[|\]$/g, ''), () => server.close(() => resolve()))
  })
}

/** `:9978` is all addresses; an IPv6 address stands in brackets. */
function splitAddress(address: string): readonly [host: string, port: string] {
  const place = address.lastIndexOf(':')
  const host = address.slice(0, place)
  return [host === '' ? '[::]' : host, address.slice(place + 1)]
}
