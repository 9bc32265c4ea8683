import { afterEach, beforeEach, expect, it } from 'vitest'
import { readRequest } from '../protocol/strict-reader.ts'
import {
  answering,
  type EngineRig,
  ok,
  RawConnection,
  type RawUpstream,
  startEngine,
} from './engine-rig.ts'
import { endHeaders, FrameClient, headers } from './frame-client.ts'

let rig: EngineRig
let upstream: RawUpstream

beforeEach(async () => {
  rig = await startEngine()
  upstream = await answering(ok)
  rig.plane.upstream = upstream.address
})
afterEach(async () => {
  await rig.close()
  upstream.close()
})

const connect = [
  [':method', 'CONNECT'],
  [':protocol', 'websocket'],
  [':scheme', 'http'],
  [':authority', 'x.example'],
  [':path', '/chat'],
] as const

it.each<[string, () => void]>([
  ['the upstream', () => {}],
  [
    'the gateway',
    () => {
      rig.plane.request = (exchange) => exchange.respond(200, [], 'ok')
    },
  ],
  [
    'a stream of the gateway',
    () => {
      rig.plane.request = (exchange) => {
        const stream = exchange.respondStream(200, [])
        stream?.write(Buffer.from('ok'))
        stream?.end()
      }
    },
  ],
])(
  'answers an extended CONNECT with 501 if %s answers 200 without a tunnel',
  async (_title, prepare) => {
    prepare()
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, connect, endHeaders))
    const { fields, body } = await client.response(1)
    expect([fields[0], body]).toEqual([':status: 501', 'ok'])
  },
)

it('frames mirrored requests by the body that is sent, however late it was replaced', async () => {
  const copies = await answering(ok)
  rig.plane.request = (exchange) => {
    exchange.mirror(copies.address)
    exchange.requestBody.replace(Buffer.from('another body'))
    exchange.forward(upstream.address, rig.plane.options)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await client.responses(1)
  for (const { connections } of [upstream, copies]) {
    const [connection] = connections
    await connection?.until(() => connection.text.endsWith('another body'))
    const request = readRequest(connection?.text ?? '', 0)
    expect(request?.content).toBe('another body')
    expect(request?.end).toBe(connection?.text.length)
  }
  copies.close()
})
