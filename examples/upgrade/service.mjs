// A load balancer for two gateways, as a Service of Kubernetes is: new connections are sent to gateways
// that are ready.
import { connect, createServer } from 'node:net'

const gateways = [
  { host: '127.0.0.1', port: 8080, readiness: 'http://127.0.0.1:15021/healthz/ready' },
  { host: '127.0.0.2', port: 8080, readiness: 'http://127.0.0.1:15121/healthz/ready' },
]
let ready = []
let turn = 0

async function probe() {
  const answers = await Promise.all(
    gateways.map(({ readiness }) => fetch(readiness).catch(() => undefined)),
  )
  ready = gateways.filter((_, index) => answers[index]?.status === 200)
  setTimeout(probe, 100)
}
await probe()

const server = createServer((client) => {
  const gateway = ready[turn++ % ready.length]
  if (gateway === undefined) return client.destroy()
  const upstream = connect(gateway.port, gateway.host)
  client.on('error', () => upstream.destroy())
  upstream.on('error', () => client.destroy())
  client.pipe(upstream).pipe(client)
})
server.listen(8000, '127.0.0.1', () => console.log('ready'))
