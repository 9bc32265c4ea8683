/**
 * An address where connections are neither made nor refused, as behind a firewall that drops them:
 * a listening socket whose queue is full and whose thread sleeps, so that Linux drops every SYN.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'

const sleeper = `
const { parentPort, workerData } = require('node:worker_threads')
const { createServer } = require('node:net')
const server = createServer()
server.listen({ ...workerData, backlog: 1 }, () => {
  parentPort.postMessage(server.address().port)
  // The message leaves first; from here on nothing is accepted.
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
})
`

export interface Blackhole {
  readonly port: number
  close(): Promise<void>
}

export async function startBlackhole(host: string, wanted = 0): Promise<Blackhole> {
  const worker = new Worker(sleeper, { eval: true, workerData: { host, port: wanted } })
  const [port] = (await once(worker, 'message')) as [number]
  // The queue accepts one connection more than its limit.
  const waiting: Socket[] = []
  for (let count = 0; count < 2; count++) {
    const socket = connect({ host, port })
    socket.on('error', () => {})
    waiting.push(socket)
    await once(socket, 'connect')
  }
  return {
    port,
    close: async () => {
      for (const socket of waiting) socket.destroy()
      await worker.terminate()
    },
  }
}
