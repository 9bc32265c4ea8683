import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, hostOf, routeByHost, toBackend } from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

describeWithParts(['nats-server'], 'records on a NATS server', async () => {
  const port = await freePort()
  const server = useFixture(startNatsServer, (part) => part.remove())
  const running = useGateway(() => ({
    manifests: [gateway(port), routeByHost('shop', toBackend('absent'))],
    nats: server.url,
    args: ['--record', 'errors'],
    env: { XDG_STATE_HOME: server.folder },
  }))

  async function recorded(path: string): Promise<string> {
    const { headers } = await running.send(port, { host: hostOf('shop'), path })
    const id = `${headers['x-request-id']}`
    await waitFor('the record', async () => (await decisions('--id', id)).code === 0)
    return id
  }
  const decisions = (...args: string[]) => sluice('decisions', '--nats', server.url, ...args)

  it('are printed in the order in which they were published', async () => {
    const ids = [await recorded('/one'), await recorded('/two')]
    const { stdout } = await decisions('--status', '500', '-o', 'json')
    const found = stdout.trimEnd().split('\n')
    expect(found.map((line) => JSON.parse(line).id)).toEqual(ids)
  })

  it('are explained with the event log of the same server', async () => {
    const id = await recorded('/three')
    const { code, stdout } = await sluice('explain', 'request', '--id', id, '--nats', server.url)
    expect(code).toBe(0)
    expect(stdout).toMatch(/rule 0 of HTTPRoute default\/shop +generation 1 +event \d+, since /)
  })

  it('are printed although a message of the stream is no block', async () => {
    const connection = await connect({ servers: server.url })
    const { seq } = await jetstream(connection).publish('sluice-decisions', 'no block')
    await connection.close()
    const id = await recorded('/four')
    const { code, stdout, stderr } = await decisions('--id', id)
    expect(code).toBe(0)
    expect(stdout).toContain('/four')
    expect(stderr).toBe(`message ${seq} of ${server.url}: offset 0: the block is cut off\n`)
  })

  it('are not found on a server without the stream', async () => {
    const other = await startNatsServer()
    try {
      const { code, stderr } = await sluice('decisions', '--nats', other.url)
      expect(code).toBe(2)
      expect(stderr).toContain('the NATS server has no stream SLUICE_DECISIONS')
    } finally {
      await other.remove()
    }
  })
})
