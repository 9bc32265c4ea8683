/** TLS handshakes as a load: each client shakes hands, closes, and connects again. */
import { once } from 'node:events'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { cpuPer } from './cost.ts'
import { type Load, routing, scenarios } from './load.ts'
import type { MeasuredProxy } from './process.ts'

/** Clients that shake hands at a time. */
const clients = 8

/** What a handshake agrees on: the same for every proxy. */
export const handshakeKinds = {
  /** X25519, which every proxy has. */
  full: { ecdhCurve: 'X25519' },
  /** Hybrid with ML-KEM-768, which clients prefer if the proxy offers it. */
  hybrid: { ecdhCurve: 'X25519MLKEM768:X25519' },
  resumed: { ecdhCurve: 'X25519' },
} as const satisfies Record<string, ConnectionOptions>

export type HandshakeKind = keyof typeof handshakeKinds

function dial(port: number, options: ConnectionOptions): TLSSocket {
  return connect({
    port,
    host: '127.0.0.1',
    servername: routing.host,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.3',
    ...options,
  }).resume()
}

/** A session that a proxy issued and resumes; rejects if it does not resume it. */
async function sessionOf(port: number, options: ConnectionOptions): Promise<Buffer> {
  const first = dial(port, options)
  // BoringSSL sends session tickets only with its first response.
  first.write(scenarios.get.request)
  const [session] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  const second = dial(port, { ...options, session })
  await once(second, 'secureConnect')
  const isReused = second.isSessionReused()
  second.destroy()
  if (!isReused) throw new Error('the proxy does not take up the session that it gave')
  return session
}

function startHandshakes(port: number, options: ConnectionOptions): Load {
  let count = 0
  let isStopped = false
  let failure: Error | undefined
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = dial(port, options)
      socket.once('secureConnect', () => {
        if (options.session !== undefined && !socket.isSessionReused()) {
          failure ??= new Error('the proxy did not take up a session under load')
        }
        // The end travels behind what finishes the handshake, so that the proxy has seen it whole.
        socket.end()
      })
      socket.once('error', (error) => {
        if (!isStopped) failure ??= error
      })
      socket.once('close', () => {
        count++
        resolve()
      })
    })
  const run = async () => {
    while (!isStopped && failure === undefined) await one()
  }
  const running = Array.from({ length: clients }, run)
  const stop = async () => {
    isStopped = true
    await Promise.all(running)
    if (failure !== undefined) throw failure
  }
  return { responses: () => count, stop }
}

/** Microseconds of the proxy's CPU for a handshake, the beginning and end of its connection included. */
export async function handshakeCost(
  proxy: MeasuredProxy,
  kind: HandshakeKind,
  seconds: number,
): Promise<number> {
  const options = handshakeKinds[kind]
  const { port } = proxy
  const session = kind === 'resumed' ? { session: await sessionOf(port, options) } : {}
  const load = startHandshakes(port, { ...options, ...session })
  return cpuPer(load.responses, proxy, load, { endStreams() {} }, seconds)
}
