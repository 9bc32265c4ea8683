import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { KubeClient } from './client.ts'
import { type KubernetesCluster, openCluster } from './cluster.ts'

let folder: string
let server: Server
let cluster: KubernetesCluster
afterEach(async () => {
  cluster.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

async function clientOf(answer: RequestListener): Promise<KubeClient> {
  server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  folder = mkdtempSync(join(tmpdir(), 'sluice-kube-'))
  const path = join(folder, 'config')
  const named = (kind: string, content: object) => [{ name: 'test', [kind]: content }]
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: named('cluster', {
      server: `http://127.0.0.1:${port}`,
      'insecure-skip-tls-verify': true,
    }),
    users: named('user', {}),
    contexts: named('context', { cluster: 'test', user: 'test' }),
  }
  writeFileSync(path, JSON.stringify(config))
  cluster = openCluster(path)
  return new KubeClient(cluster)
}

const timeout = { status: 0, reason: 'Timeout' }
const openTimeoutMs = 100

/** Responses that never end, by what they lack. */
const unfinished: Readonly<Record<string, RequestListener>> = {
  'no head': () => undefined,
  'no body of an error': (_, response) => {
    response.writeHead(500, { 'content-type': 'application/json' }).flushHeaders()
  },
}

describe.each(Object.entries(unfinished))('a response with %s', (_, answer) => {
  it('ends a watch with a timeout', async () => {
    const client = await clientOf(answer)
    const watch = client.watch('/api/v1/pods', {}, new AbortController().signal, { openTimeoutMs })
    await expect(Array.fromAsync(watch)).rejects.toMatchObject(timeout)
  })

  it('ends any other request with a timeout', async () => {
    const client = await clientOf(answer)
    await expect(client.get('/api/v1/pods', { timeoutMs: 100 })).rejects.toMatchObject(timeout)
    await expect(client.create('/api/v1/pods', {}, 100)).rejects.toMatchObject(timeout)
    await expect(client.replace('/api/v1/pods/a', {}, 100)).rejects.toMatchObject(timeout)
  })
})

it('an open watch is not ended by the limit for its head', async () => {
  const line = (name: string) => `${JSON.stringify({ type: 'ADDED', object: { name } })}\n`
  const client = await clientOf((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(line('a'))
    setTimeout(() => response.end(line('b')), 3 * openTimeoutMs)
  })
  const watch = client.watch('/api/v1/pods', {}, new AbortController().signal, { openTimeoutMs })
  expect((await Array.fromAsync(watch)).map(({ object }) => object)).toEqual([
    { name: 'a' },
    { name: 'b' },
  ])
})
