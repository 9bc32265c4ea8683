/** Relays TCP connections to a port, as a port forward does, and can go away and come back. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface Relay {
  readonly port: number
  /** Breaks all connections, and refuses new ones. */
  goAway(): Promise<void>
  comeBack(): Promise<void>
  /** Comes back, but passes nothing on until the returned function is called. */
  comeBackSlowly(): Promise<() => void>
  close(): Promise<void>
}

export async function startRelay(target: number, ownPort = 0): Promise<Relay> {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  let isPassing: Promise<void> | undefined
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  }
  const listen = async (port: number) => {
    server = createServer(async (client) => {
      keep(client)
      await isPassing
      if (client.destroyed) return
      const upstream = connect(target, '127.0.0.1')
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
  const comeBackSlowly = async () => {
    const passing = Promise.withResolvers<void>()
    isPassing = passing.promise
    await listen(port)
    return passing.resolve
  }
  return {
    port,
    goAway,
    comeBackSlowly,
    comeBack: () => listen(port).then(() => undefined),
    close: goAway,
  }
}
