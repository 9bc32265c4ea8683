/**
 * A plain HTTP proxy in front of an API server that tells every event of a watch twice, in pairs the
 * wrong way round, and the first one of a pair once more at the end: what a client may see where
 * servers are many and caches differ.
 */

import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { linesOf } from '../kube/lines.ts'
import type { ApiServer } from './api-server.ts'

export interface UnsteadyProxy {
  /** Path of a kubeconfig file that goes through the proxy. */
  readonly kubeconfig: string
  /** Number of lines that were told again or in the wrong order. */
  readonly mangled: () => number
  close(): void
}

export async function startUnsteadyProxy(
  { url, token, ca, kubeconfig }: ApiServer,
  kinds: readonly string[],
): Promise<UnsteadyProxy> {
  const agent = new Agent({ keepAlive: true, ca })
  let mangled = 0
  const pass = async (lines: AsyncIterable<string>, response: ServerResponse) => {
    let held: string | undefined
    for await (const line of lines) {
      if (line.includes('"type":"BOOKMARK"')) {
        response.write(`${line}\n`)
        continue
      }
      mangled++
      response.write(`${line}\n${line}\n`)
      if (held !== undefined) response.write(`${held}\n${line}\n${held}\n`)
      held = held === undefined ? line : undefined
    }
  }
  const server = createServer((incoming, response) => {
    const { host: _, ...kept } = incoming.headers
    const headers = { ...kept, authorization: `Bearer ${token}` }
    const outgoing = httpsRequest(
      new URL(incoming.url ?? '/', url),
      { method: incoming.method ?? 'GET', headers, agent },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        const { pathname, searchParams } = new URL(incoming.url ?? '/', url)
        const isMangled =
          searchParams.get('watch') === 'true' && kinds.some((kind) => pathname.endsWith(kind))
        if (!isMangled) answer.pipe(response)
        else {
          pass(linesOf(answer), response)
            .catch(() => undefined)
            .finally(() => response.end())
        }
      },
    )
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const file = `${kubeconfig}.unsteady`
  const cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  }
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  return {
    kubeconfig: file,
    mangled: () => mangled,
    close: () => {
      server.close()
      server.closeAllConnections()
      agent.destroy()
    },
  }
}
