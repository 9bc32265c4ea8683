/** Clients of tunnels (CONNECT) that write their own bytes. */
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
} from 'node:http2'
import { connect, type Socket } from 'node:net'

export interface Answered {
  readonly status: number
  /** Status line and fields, as they were sent. */
  readonly head: string
  /** What came after the head so far. */
  readonly rest: Buffer
  readonly socket: Socket
}

/** Writes bytes to a port of the loopback address, and waits for the head of the answer. */
export async function sendRaw(port: number, text: string): Promise<Answered> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  socket.write(text, 'latin1')
  let got = Buffer.alloc(0)
  while (!got.includes('\r\n\r\n')) {
    const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'end')])
    if (chunk === undefined) break
    got = Buffer.concat([got, chunk])
  }
  const end = got.indexOf('\r\n\r\n') + 4
  const head = got.toString('latin1', 0, end)
  return { status: Number(head.split(' ')[1]), head, rest: got.subarray(end), socket }
}

/** Asks for a tunnel. `early` follows the head at once. */
export function askTunnel(
  port: number,
  authority: string,
  fields: Readonly<Record<string, string>> = {},
  early = '',
): Promise<Answered> {
  const lines = Object.entries({ host: authority, ...fields }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return sendRaw(port, `CONNECT ${authority} HTTP/1.1\r\n${lines.join('')}\r\n${early}`)
}

/** Reads until the text was received, or the other side ends; returns everything. */
export function readUntil(
  stream: Socket | ClientHttp2Stream,
  text: string,
  before: Buffer = Buffer.alloc(0),
): Promise<string> {
  const parts = [before]
  let tail = before.toString('latin1')
  return new Promise((resolve) => {
    const done = () => {
      stream.off('data', take).off('end', done).off('close', done)
      resolve(Buffer.concat(parts).toString('latin1'))
    }
    const take = (chunk: Buffer) => {
      parts.push(chunk)
      tail = (tail + chunk.toString('latin1')).slice(-2 * 65_536)
      if (text !== '' && tail.includes(text)) done()
    }
    if (text !== '' && tail.includes(text)) done()
    else stream.on('data', take).once('end', done).once('close', done)
  })
}

/** Waits until the socket has closed; returns whether it was reset. */
export async function closed(socket: Socket): Promise<boolean> {
  if (!socket.closed) {
    const end = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    await end
  }
  return socket.errored !== null
}

export async function openHttp2(port: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  await once(session, 'remoteSettings')
  return session
}

/** Asks for a tunnel over HTTP/2; returns its status and its stream. */
export async function askHttp2Tunnel(
  session: ClientHttp2Session,
  authority: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly stream: ClientHttp2Stream }> {
  const stream = session.request({ ':method': 'CONNECT', ':authority': authority, ...fields })
  stream.on('error', () => {})
  const [head] = await once(stream, 'response')
  return { status: Number(head[':status']), stream }
}
