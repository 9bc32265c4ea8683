import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { openNatsLog } from '../../src/log/nats.ts'
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
})

/** All streams belong to the test: the server is its own. */
async function removeStreams(url: string): Promise<void> {
  const connection = await connect({ servers: url })
  const manager = await jetstreamManager(connection)
  for await (const name of manager.streams.names()) await manager.streams.delete(name)
  await connection.close()
}
