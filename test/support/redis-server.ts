/** A server that speaks a part of RESP2 strictly: AUTH, SELECT, GET, and SET with PX. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface RedisServer {
  readonly port: number
  /** Values of all databases by `DATABASE KEY`. */
  readonly values: Map<string, { readonly value: Buffer; readonly ttl: number }>
  /** Commands without their values, in order. */
  readonly commands: string[]
  /** Set to let commands wait without a reply. */
  isSilent: boolean
  /** Closes all connections. */
  drop(): void
  close(): Promise<void>
}

interface Session {
  database: string
  isAllowed: boolean
}

export async function startRedisServer(password: string): Promise<RedisServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    const session: Session = { database: '0', isAllowed: false }
    let bytes: Buffer = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (piece) => {
      bytes = Buffer.concat([bytes, piece])
      for (let found = readCommand(bytes); found !== undefined; found = readCommand(bytes)) {
        bytes = bytes.subarray(found.end)
        if (self.isSilent) continue
        // In two pieces, as networks may deliver it.
        const reply = answer(session, found.parts)
        socket.write(reply.subarray(0, 3))
        setImmediate(() => socket.write(reply.subarray(3)))
      }
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')

  function answer(session: Session, parts: readonly Buffer[]): Buffer {
    const [name = '', first = '', ...rest] = parts.map(String)
    self.commands.push(name === 'AUTH' ? name : `${name} ${first}`)
    if (name === 'AUTH') {
      session.isAllowed = first === password
      return session.isAllowed ? ok : error('WRONGPASS')
    }
    if (!session.isAllowed) return error('NOAUTH')
    const place = `${session.database} ${first}`
    switch (name) {
      case 'SELECT':
        session.database = first
        return ok
      case 'GET': {
        const found = self.values.get(place)
        if (found === undefined) return Buffer.from('$-1\r\n')
        const head = Buffer.from(`$${found.value.length}\r\n`)
        return Buffer.concat([head, found.value, Buffer.from('\r\n')])
      }
      case 'SET': {
        const [option, ttl = ''] = rest.slice(1)
        const value = parts[2]
        const isValid = option === 'PX' && /^[1-9]\d*$/.test(ttl)
        if (value === undefined || !isValid) return error('ERR syntax')
        self.values.set(place, { value, ttl: Number(ttl) })
        return ok
      }
      default:
        return error('ERR unknown command')
    }
  }

  const self: RedisServer = {
    port: (server.address() as AddressInfo).port,
    values: new Map(),
    commands: [],
    isSilent: false,
    drop() {
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      self.drop()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return self
}

const ok = Buffer.from('+OK\r\n')
const error = (text: string): Buffer => Buffer.from(`-${text}\r\n`)

/** Returns the first command; undefined if not all of it has arrived. @throws Error if it is no list of texts */
function readCommand(
  bytes: Buffer,
): { readonly parts: readonly Buffer[]; readonly end: number } | undefined {
  const line = (at: number, sign: string) => {
    const stop = bytes.indexOf('\r\n', at)
    if (stop < 0) return undefined
    const text = bytes.toString('latin1', at, stop)
    if (!new RegExp(`^\\${sign}\\d+$`).test(text)) throw new Error(`not RESP: ${text}`)
    return { count: Number(text.slice(1)), end: stop + 2 }
  }
  const list = line(0, '*')
  if (list === undefined) return undefined
  const parts: Buffer[] = []
  let at = list.end
  for (let index = 0; index < list.count; index++) {
    const length = line(at, '$')
    if (length === undefined || bytes.length < length.end + length.count + 2) return undefined
    parts.push(bytes.subarray(length.end, length.end + length.count))
    at = length.end + length.count + 2
  }
  return { parts, end: at }
}
