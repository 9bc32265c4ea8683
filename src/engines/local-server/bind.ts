/** Binds small servers to the addresses that settings name. */
import type { AddressInfo, Server } from 'node:net'
import { hostAndPort, listenHosts } from '../../ground/base/listen-hosts.ts'
import { cannotListen } from '../../ground/errors/listening.ts'

/** Splits `host:port`, `[v6]:port` or `:port`. The host is without brackets. */
function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return { host, port: Number(address.slice(colon + 1)) }
}

interface BoundServers<S extends Server> {
  /** The bound `host:port`. */
  readonly address: string
  /** One for each address. */
  readonly servers: readonly S[]
}

/**
 * Binds servers to an address. `:port` means all addresses of both families, and `localhost:port` the loopback
 * addresses of both. Rejects with `port_in_use` or `address_unusable` if the address cannot be bound. `name` is the
 * name of the server in errors.
 */
export async function bindServers<S extends Server>(
  name: string,
  address: string,
  create: () => S,
): Promise<BoundServers<S>> {
  const { host, port } = splitAddress(address)
  const servers: S[] = []
  try {
    for (const one of await listenHosts(host)) {
      const server = create()
      // A free port is chosen for the first address; the others get the same one.
      await bind(server, one, servers.length === 0 ? port : boundTo(servers).port)
      servers.push(server)
    }
  } catch (error) {
    for (const server of servers) server.close()
    throw cannotListen(name, address, error)
  }
  const bound = boundTo(servers)
  return { address: hostAndPort(bound.address, bound.port), servers }
}

const boundTo = ([first]: readonly Server[]): AddressInfo => first?.address() as AddressInfo

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => resolve())
  })
}
