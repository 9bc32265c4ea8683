import { type AddressInfo, createServer, type Server } from 'node:net'

const host = '127.0.0.1'

/** Binds a port of this machine; rejects if it is in use. Port 0 binds a free port. */
export function hold(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port }, () => resolve(server))
  })
}

/** A port that was free a moment ago, for listeners, which cannot ask for port 0. */
export async function freePort(): Promise<number> {
  const server = await hold(0)
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
