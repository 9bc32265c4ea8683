/**
 * A plain HTTP proxy in front of an API server that behaves as clients must tolerate. It sends every
 * watch event twice, swaps the events of each pair, and repeats the first one of a pair later, as
 * servers with different caches may do. It returns lists in small pages. On request, it
 * answers that the version of a watch or of a list has expired.
 */

import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { linesOf } from '../../src/control/kube/lines.ts'
import type { ApiServer } from './api-server.ts'

export interface UnsteadyProxy {
  /** Path of a kubeconfig file that goes through the proxy. */
  readonly kubeconfig: string
  /** The number of lines that were repeated or out of order. */
  readonly mangled: () => number
  /** Number of lists that were asked for from where another page ended. */
  readonly continued: () => number
  /** Loses the events of the watches from now on. */
  readonly loseEvents: () => void
  /** Ends the watches with 410, as a server that has compacted; the next ones lose nothing. */
  readonly expireWatches: () => void
  /** Answers the next page of a list with 410. */
  readonly expirePage: () => void
  close(): void
}

/** What an API server answers for a resourceVersion that it has compacted away. */
const expired = JSON.stringify({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  reason: 'Expired',
  code: 410,
  message: 'The resourceVersion for the provided watch is too old.',
})

export async function startUnsteadyProxy(
  { url, token, ca, kubeconfig }: ApiServer,
  kinds: readonly string[],
  /** Objects in a page of a list; as many as the client wants otherwise. */
  pageSize?: number,
): Promise<UnsteadyProxy> {
  const agent = new Agent({ keepAlive: true, ca })
  let mangled = 0
  let continued = 0
  let isDeaf = false
  let isPageExpired = false
  const watches = new Set<ServerResponse>()
  const pass = async (lines: AsyncIterable<string>, response: ServerResponse) => {
    let held: string | undefined
    for await (const line of lines) {
      if (isDeaf) continue
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
  /** The URL to request from the server; undefined if the request is answered here. */
  const targetOf = (incoming: IncomingMessage, response: ServerResponse): URL | undefined => {
    const target = new URL(incoming.url ?? '/', url)
    const isList = incoming.method === 'GET' && kinds.some((kind) => target.pathname.endsWith(kind))
    if (!isList || target.searchParams.get('watch') === 'true') return target
    if (pageSize !== undefined) target.searchParams.set('limit', String(pageSize))
    if (!target.searchParams.has('continue')) return target
    continued++
    if (!isPageExpired) return target
    isPageExpired = false
    response.writeHead(410, { 'content-type': 'application/json' }).end(expired)
    return undefined
  }
  const server = createServer((incoming, response) => {
    const target = targetOf(incoming, response)
    if (target === undefined) return
    const { host: _, ...kept } = incoming.headers
    const headers = { ...kept, authorization: `Bearer ${token}` }
    const outgoing = httpsRequest(
      target,
      { method: incoming.method ?? 'GET', headers, agent },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        const { pathname, searchParams } = target
        const isMangled =
          searchParams.get('watch') === 'true' && kinds.some((kind) => pathname.endsWith(kind))
        if (!isMangled) answer.pipe(response)
        else {
          watches.add(response)
          response.once('close', () => watches.delete(response))
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
    continued: () => continued,
    loseEvents: () => {
      isDeaf = true
    },
    expireWatches: () => {
      for (const watch of watches) watch.end(`{"type":"ERROR","object":${expired}}\n`)
      isDeaf = false
    },
    expirePage: () => {
      isPageExpired = true
    },
    close: () => {
      server.close()
      server.closeAllConnections()
      agent.destroy()
    },
  }
}
