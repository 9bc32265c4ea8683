/** Messages of clients of the older transport (HTTP with SSE) whose stream does not exist. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'

const server = useMcpServer({
  offer: (one) => {
    one.registerTool('who', {}, () => ({ content: [] }))
  },
})
const ports = { single: await freePort(), several: await freePort() }
const key = join(useFolder('sluice-mcp-'), 'session.key')
writeFileSync(key, 'a secret that both processes share')
const useWorkers = (port: number, workers: string) =>
  useGateway(() => {
    const targets = [{ name: 'only', static: { host: '127.0.0.1', port: server.port } }]
    return {
      manifests: { 'all.yaml': mcpManifests(port, { sse: { targets } }) },
      args: ['--session-key-file', key, '--workers', workers],
    }
  })
useWorkers(ports.single, '1')
useWorkers(ports.several, '2')

const send = (port: number, path: string) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      connection: 'close',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    // Before this fails, a busy thread may take some seconds.
    signal: AbortSignal.timeout(5_000),
  })

/** Opens a stream. Returns the path for its messages, and a function that closes it. */
async function open(port: number): Promise<{ path: string; close(): Promise<void> }> {
  const headers = { accept: 'text/event-stream' }
  const { body } = await fetch(`http://127.0.0.1:${port}/sse`, { headers })
  const reader = body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  const path = /data: (.*)/.exec(new TextDecoder().decode(value))?.[1] ?? ''
  return { path, close: async () => reader?.cancel() }
}

describe.each(['single', 'several'] as const)('a gateway with workers: %s', (name) => {
  const port = ports[name]

  it.each(['abc', '', 'x'.repeat(200)])(
    'answers 404 at once for a stream that it has not named: %s',
    async (id) => {
      expect((await send(port, `/sse?sessionId=${id}`)).status).toBe(404)
    },
  )

  it('answers 404 at once for a stream of another process', async () => {
    const { path, close } = await open(ports[name === 'single' ? 'several' : 'single'])
    for (let n = 0; n < 4; n++) expect((await send(port, path)).status).toBe(404)
    await close()
  })

  it('takes messages in every thread while the stream is open, and then answers 404', async () => {
    const { path, close } = await open(port)
    for (let n = 0; n < 6; n++) expect((await send(port, path)).status).toBe(202)
    await close()
    await expect.poll(async () => (await send(port, path)).status).toBe(404)
    for (let n = 0; n < 6; n++) expect((await send(port, path)).status).toBe(404)
  })
})
