// A process that serves three requests and ends in the same moment, without draining.
import { freePort } from './free-port.ts'
import { backend, listener, openProxy, openUpstream, route } from './running-proxy.ts'

const upstream = await openUpstream((_incoming, answer) => answer.end())
const { proxy, publish } = await openProxy({ accessLogFd: 1 })
const port = await freePort()
publish([listener('web', port), route('shop', '/', ['web']), backend(upstream.port)])
await proxy.ready
for (const path of ['/0', '/1', '/2']) await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
process.exit(0)
