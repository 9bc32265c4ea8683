/** Limits of all workers together: exact, and given back by a worker that dies. */
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { freePort } from './free-port.ts'
import { backend, listener, openProxy, openUpstream, route } from './running-proxy.ts'

const most = { connections: 8, requests: 3 }

describe.runIf(process.platform === 'linux')('limits that two workers share', () => {
  const threads: Worker[] = []
  const collect = (thread: Worker) => threads.push(thread)
  /** Requests at the upstream, which are answered when the test wants it. */
  const held = new Set<ServerResponse>()
  let upstream: Awaited<ReturnType<typeof openUpstream>>
  let running: Awaited<ReturnType<typeof openProxy>>
  let port: number
  let sockets: Socket[] = []

  beforeAll(async () => {
    process.on('worker', collect)
    upstream = await openUpstream((_, answer) => {
      held.add(answer)
      answer.once('close', () => held.delete(answer))
    })
    const edge = { trustedProxies: [], proxyProtocolFrom: [], maxConnections: most.connections }
    running = await openProxy({ workers: 2, maxBackendRequests: most.requests, edge })
    port = await freePort()
    running.publish([listener('web', port), route('shop', '/', ['web']), backend(upstream.port)])
    await running.proxy.ready
  })
  afterAll(async () => {
    process.off('worker', collect)
    for (const socket of sockets) socket.destroy()
    await running?.close()
    await upstream?.close()
  })

  /** Sixteen clients at once, each with a request: what becomes of them. */
  async function rush(): Promise<{ reset: number; refused: number; held: number }> {
    const found = { reset: 0, refused: 0, held: 0 }
    sockets = Array.from({ length: 16 }, () => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
      socket.on('error', () => {})
      socket.once('data', () => found.refused++)
      socket.once('close', () => found.reset++)
      return socket
    })
    await waitFor('all to be decided', () => {
      found.held = held.size
      return found.reset + found.refused + found.held === sockets.length
    })
    return { ...found }
  }

  const { connections, requests } = most
  const exactly = { reset: 16 - connections, refused: connections - requests, held: requests }

  it('are exact, whichever worker a client reaches', async () => {
    expect(await rush()).toEqual(exactly)
  })

  it('are released by workers that die with connections and requests', async () => {
    const { proxy } = running
    for (const at of [0, 1]) {
      const count = threads.length
      await threads[at]?.terminate()
      await waitFor('another worker', () => threads.length > count)
    }
    await waitFor('the requests to end', () => held.size === 0)
    await waitFor('both workers', () => proxy.ports().includes(port))
    expect(await rush()).toEqual(exactly)
  })
})
