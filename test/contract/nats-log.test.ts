import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { expect, it } from 'vitest'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { useFixture } from '../support/fixture.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { describeLog } from './log-contract.ts'

describeWithParts(['nats-server'], 'the log on a NATS server', () => {
  const server = useFixture(
    () => startNatsServer(),
    (part) => part.remove(),
  )

  describeLog('NATS', () => {
    const open = () => openNatsLog({ servers: server.url })
    return { open, reopen: open, remove: () => removeStreams(server.url) }
  })

  it('makes the server compress a new stream and an earlier one, if it can', async () => {
    const connection = await connect({ servers: server.url })
    const { streams } = await jetstreamManager(connection)
    const [major = 0, minor = 0] = (connection.info?.version ?? '').split('.').map(Number)
    const expected = major > 2 || minor >= 10 ? 's2' : undefined
    const compression = async () => {
      await (await openNatsLog({ servers: server.url })).close()
      return (await streams.info('SLUICE_EVENTS')).config.compression
    }
    expect(await compression()).toBe(expected)
    await streams.delete('SLUICE_EVENTS')
    await streams.add({ name: 'SLUICE_EVENTS', subjects: ['sluice.>'], discard: 'new' })
    expect(await compression()).toBe(expected)
    await connection.close()
    await removeStreams(server.url)
  })
})

/** All streams belong to the test: the server is its own. */
async function removeStreams(url: string): Promise<void> {
  const connection = await connect({ servers: url })
  const manager = await jetstreamManager(connection)
  for await (const name of manager.streams.names()) await manager.streams.delete(name)
  await connection.close()
}
