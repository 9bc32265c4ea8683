// A proxy whose worker traps (see trapping-core.ts): prints the responses and the log.
import { once } from 'node:events'
import { connect } from 'node:http2'
import { setImmediate as turn } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { backend, listener, openProxy, openUpstream, route } from './running-proxy.ts'

const upstream = await openUpstream((_incoming, answer) => answer.end())
const { proxy, publish, events, scrape, close } = await openProxy({ workers: 1 })
const port = await freePort()
publish([listener('web', port), route('shop', '/', ['web']), backend(upstream.port)])
await proxy.ready

/** Requests a path on a new connection; retries while none is accepted. */
async function status(path: string): Promise<number> {
  for (;;) {
    try {
      const url = `http://127.0.0.1:${port}${path}`
      return (await fetch(url, { headers: { connection: 'close' } })).status
    } catch {
      await turn()
    }
  }
}

const session = connect(`http://127.0.0.1:${port}`).on('error', () => {})
await once(
  session
    .request({ ':path': '/' })
    .on('error', () => {})
    .resume(),
  'end',
)
const before = await scrape()
const statuses = [await status('/'), await status('/trap')]
while (!events.some(({ type }) => type === 'worker-died')) await turn()
statuses.push(await status('/'))
process.stdout.write(JSON.stringify({ statuses, events, before, metrics: await scrape() }))
session.destroy()
await close()
await upstream.close()
