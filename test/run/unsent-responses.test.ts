/** Responses that fail before any part of them was sent: what the client, the log, metrics and records say. */
import { connect } from 'node:http2'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { readFolder } from '../../src/past/decisions/read.ts'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { gateway, routeByPath, staticBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

/** The upstream answers with a head, and with a body that is malformed from its beginning. */
const malformed = 'HTTP/1.1 200 OK\r\nx-from: upstream\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'
const server = createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', () => socket.write(malformed))
})
const upstream = useListening(server as never)
const port = await freePort()
const gw = useGateway(() => ({
  manifests: [gateway(port), staticBackend('broken', upstream.port), routeByPath('broken')],
}))

/** The number of requests with this status in the metrics. */
async function counted(status: number): Promise<number> {
  const [, address = ''] = /^metrics: (\S+)/m.exec(gw.stderr) ?? []
  const text = await (await fetch(address)).text()
  const lines = text.split('\n').filter((line) => line.includes('requests_total{'))
  const found = lines.filter((line) => line.includes(`status="${status}"`))
  return found.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

async function statusOverHttp2(path: string): Promise<number | undefined> {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request({ ':path': path })
    stream.resume()
    return await new Promise((resolve, reject) => {
      stream.on('response', (head) => resolve(head[':status']))
      stream.on('error', reject)
    })
  } finally {
    session.close()
  }
}

it('replaces the response by 502, and reports 502 everywhere', async () => {
  const { status, headers } = await send(port, { path: '/broken/1' })
  expect([status, headers['x-from']]).toEqual([502, undefined])
  expect(await statusOverHttp2('/broken/2')).toBe(502)
  for (const path of ['/broken/1', '/broken/2']) {
    const line = await waitFor('the line of the log', () =>
      gw.stdout.split('\n').find((one) => one.includes(`http.path=${path} `)),
    )
    expect(line).toContain('http.status=502')
    expect(line).toContain('reason=UpstreamFailure')
  }
  await waitFor('the metrics', async () => (await counted(502)) === 2)
  expect(await counted(200)).toBe(0)
  const statuses = () =>
    [...readFolder(`${gw.logFile}.decisions`)].flatMap((result) =>
      'decision' in result ? [result.decision.response.status] : [],
    )
  await waitFor('the records', () => statuses().length === 2)
  expect(statuses()).toEqual([502, 502])
})
