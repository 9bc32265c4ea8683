/** Relays TCP connections to a port, as a port forward does, and can go away and come back. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface Relay {
  readonly port: number
  /** Breaks all connections, and refuses new ones. */
  goAway(): Promise<void>
  comeBack(): Promise<void>
  close(): Promise<void>
}

export async function startRelay(target: number, ownPort = 0): Promise<Relay> {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  }
  const listen = async (port: number) => {
    server = createServer((client) => {
      const upstream = connect(target, '127.0.0.1')
      keep(client)
      keep(upstream)
      client.pipe(upstream).pipe(client)
      client.on('close', () => upstream.destroy())
      upstream.on('close', () => client.destroy())
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const goAway = async () => {
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
    server = undefined
  }
  const port = await listen(ownPort)
  return { port, goAway, comeBack: () => listen(port).then(() => undefined), close: goAway }
}
