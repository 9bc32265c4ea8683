// A thread with a handle that Node never closes: it is ended, and then the process exits.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { endThread } from '../../src/gateway/proxy/workers/end-thread.ts'

/** libuv does not reset a handle that is about to be shut down; Node then forgets the handle. */
const code = `
  const { connect, createServer } = require('node:net')
  const { parentPort } = require('node:worker_threads')
  const server = createServer(() => {}).listen(0, '127.0.0.1', () => {
    const socket = connect(server.address().port, '127.0.0.1', () => {
      socket.on('error', () => parentPort.postMessage('stuck'))
      socket.end()
      socket.resetAndDestroy()
    })
  })
`
const worker = new Worker(code, { eval: true })
await once(worker, 'message')
await endThread(worker, 200)
process.stdout.write('ended')
