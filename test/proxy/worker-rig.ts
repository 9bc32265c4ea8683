import { get } from 'node:http'
import { afterEach } from 'vitest'
import type { ConfigChannel, ConfigUpdate } from '../../src/control/wire/channel.ts'
import { encodeDelta } from '../../src/control/wire/encode.ts'
import type { Resource } from '../../src/ground/model/resources.ts'
import { freePort } from './free-port.ts'
import { backend, listener, openProxy, openUpstream, route, version } from './running-proxy.ts'

export const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A proxy with one upstream that answers with the path. */
export async function open(options: Parameters<typeof openProxy>[0] = {}) {
  const upstream = await openUpstream((incoming, answer) => answer.end(`at ${incoming.url}`))
  cleanups.push(upstream.close)
  const running = await openProxy(options)
  cleanups.push(running.close)
  const port = await freePort()
  const shop = [listener('web', port), route('shop', '/', ['web']), backend(upstream.port)]
  return { ...running, port, shop }
}

/** A proxy whose channel sends the parts of its first state one by one. */
export async function openInParts() {
  const receivers: ((update: ConfigUpdate) => void)[] = []
  const acks: number[] = []
  const channel: ConfigChannel = {
    subscribe(receive) {
      receivers.push(receive)
      return () => undefined
    },
    ack: (_, sequence) => acks.push(sequence),
    reject: () => undefined,
    recover: () => undefined,
  }
  const running = await open({ channel })
  const sendBytes = (content: Uint8Array, isPart = false) => {
    const bytes = new Uint8Array(new SharedArrayBuffer(content.length))
    bytes.set(content)
    for (const receive of receivers) receive({ sequence: 1, bytes, ...(isPart && { isPart }) })
  }
  const send = (resources: readonly Resource[], isPart = false) =>
    sendBytes(encodeDelta({ sequence: 1, upserted: resources.map(version), removed: [] }), isPart)
  return { ...running, acks, send, sendBytes }
}

/** A request on a connection of its own. */
export function fetchOnce(port: number, path = '/'): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    }).on('error', reject)
  })
}

/** The value of a metric, added up over the series whose labels hold the text. */
export function metric(text: string, name: string, labels = ''): number {
  const lines = text.split('\n').filter((line) => line.replace(/[{ ].*/, '') === name)
  const values = lines.filter((line) => line.includes(labels)).map((line) => line.split(' ').at(-1))
  return values.reduce((sum, value) => sum + Number(value), 0)
}
