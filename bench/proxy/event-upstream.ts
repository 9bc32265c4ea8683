/** A raw upstream of benches: ready-made answers, and streams of events at an even pace. */
import { type AddressInfo, createServer, type Socket } from 'node:net'

const eventsPerStream = 100
const eventEveryMs = 4

export interface BenchUpstream {
  readonly port: number
  /** Events written to streams since the start. */
  readonly events: () => number
  /** Ends streams whose client has gone: some proxies go on reading them. */
  endStreams(): void
  close(): void
}

export interface EventStream {
  readonly event: Buffer
  /** What ends the body. */
  readonly ending: Buffer
  /** Is there an event in it? */
  readonly countsEnding: boolean
}

/**
 * `serve` reads the requests of a connection; it calls `begin` where it has written the head of a
 * stream, whose events follow by themselves.
 */
export async function startEventUpstream(
  { event, ending, countsEnding }: EventStream,
  serve: (socket: Socket, begin: () => void) => void,
): Promise<BenchUpstream> {
  const sockets = new Set<Socket>()
  const streams = new Map<Socket, number>()
  let events = 0
  const timer = setInterval(() => {
    for (const [socket, sent] of streams) {
      const isOver = sent >= eventsPerStream
      if (!isOver || countsEnding) events++
      if (isOver) streams.delete(socket)
      else streams.set(socket, sent + 1)
      socket.write(isOver ? ending : event)
    }
  }, eventEveryMs)
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => {
      sockets.delete(socket)
      streams.delete(socket)
    })
    socket.on('error', () => socket.destroy())
    serve(socket, () => streams.set(socket, 0))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endStreams = () => {
    for (const socket of streams.keys()) socket.destroy()
    streams.clear()
  }
  const close = () => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  const { port } = server.address() as AddressInfo
  return { port, events: () => events, endStreams, close }
}
