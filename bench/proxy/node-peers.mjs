// The peers from npm, each as its documentation sets it up for speed: routing by host, path and
// header, one response header, an access log in batches. Started with: peer, folder where the
// packages are, port, upstream port.
import { writeSync } from 'node:fs'
import { Agent, createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [peer, folder, port, upstreamPort] = process.argv.slice(2)
const require = createRequire(join(folder, 'package.json'))
const target = `http://127.0.0.1:${upstreamPort}`

const isRouted = ({ headers, url }) =>
  headers.host === 'bench.example.com' && url.startsWith('/api/') && headers['x-team'] === 'a'

/** As long as the other proxies keep idle connections. */
const idleMs = 300_000

let lines = ''
function log(request, response) {
  const { method, url } = request
  lines += `${new Date().toISOString()} ${method} ${url} ${response.statusCode}\n`
  if (lines.length > 16_384) flush()
}
function flush() {
  writeSync(1, lines)
  lines = ''
}

function httpProxy() {
  const agent = new Agent({ keepAlive: true })
  const proxy = require('http-proxy').createProxyServer({ target, agent })
  proxy.on('proxyRes', (_answer, _request, response) => response.setHeader('x-served-by', peer))
  proxy.on('error', (_error, _request, response) => response.writeHead(502).end())
  const server = createServer((request, response) => {
    response.on('finish', () => log(request, response))
    if (isRouted(request)) proxy.web(request, response)
    else response.writeHead(404).end()
  })
  server.keepAliveTimeout = idleMs
  server.listen(Number(port), '127.0.0.1')
}

async function fastifyHttpProxy() {
  const server = require('fastify')({ logger: false, keepAliveTimeout: idleMs })
  server.addHook('onResponse', async (request, reply) => log(request.raw, reply.raw))
  server.addHook('onRequest', async (request, reply) => {
    if (!isRouted(request.raw)) return reply.code(404).send()
  })
  await server.register(require('@fastify/http-proxy'), {
    upstream: target,
    prefix: '/api/',
    rewritePrefix: '/api/',
    proxyPayloads: true,
    replyOptions: { rewriteHeaders: (headers) => ({ ...headers, 'x-served-by': peer }) },
  })
  await server.listen({ port: Number(port), host: '127.0.0.1' })
}

if (peer === 'http-proxy') httpProxy()
else await fastifyHttpProxy()
