// The sample upstreams of the quick start: port 9101 is "shop", port 9102 is "echo". Each answers
// with what it received, so that you can see what the gateway sent.
import { createServer } from 'node:http'

/** Starts one upstream on the loopback address; resolves once it listens. */
export function startUpstream(name, port) {
  const server = createServer((request, response) => {
    const { method, url, headers } = request
    request.resume()
    response.setHeader('content-type', 'application/json')
    response.end(`${JSON.stringify({ upstream: name, method, path: url, host: headers.host })}\n`)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

export const upstreams = [
  ['shop', 9101],
  ['echo', 9102],
]
