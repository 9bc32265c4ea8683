import { status } from '@grpc/grpc-js'
import { afterEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.ts'
import { BareClient, edgeNode } from '../../../test/support/xds-client.ts'
import { XdsServer } from './server.ts'

const running: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.close()
})

/** Starts a server with an empty state, and lists the proxies that connected and disconnected. */
async function start() {
  const told: string[] = []
  const notices: string[] = []
  const reports = {
    connected: (proxy: string) => told.push(`connected ${proxy}`),
    disconnected: (proxy: string) => told.push(`disconnected ${proxy}`),
    onAck: () => {},
    onReject: () => {},
    onRecover: () => {},
  }
  const onNotice = (text: string) => notices.push(text)
  const server = await new XdsServer({ address: '127.0.0.1:0', reports, onNotice }).start()
  running.push(server)
  server.publish({ sequence: 1, upserted: [], removed: [] })
  const connect = (instance: string): BareClient => {
    const client = new BareClient({ address: server.address })
    running.push(client)
    return client.hello({ ...edgeNode, instance })
  }
  return { connect, told, notices }
}

describe('the name of a proxy', () => {
  it('is refused for another process while the proxy is connected, and reported once', async () => {
    const { connect, told, notices } = await start()
    const first = connect('one')
    await first.next()
    for (const instance of ['two', 'three']) {
      expect(await connect(instance).end()).toMatchObject({
        code: status.ALREADY_EXISTS,
        details: expect.stringContaining('SLUICE_PROXY_NAME'),
      })
    }
    expect(first.ended).toBeUndefined()
    expect(notices).toEqual([expect.stringContaining('another connected proxy has the name')])
    await connect('one').next()
    expect((await first.end()).code).toBe(status.ABORTED)
    expect(told).toEqual(['connected edge-1', 'connected edge-1'])
  })

  it('is free for another process once the stream of the first has ended', async () => {
    const { connect, told } = await start()
    const first = connect('one')
    await first.next()
    first.close()
    await waitFor('the end of the stream', () => told.includes('disconnected edge-1'))
    await connect('two').next()
  })
})
