import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { expect, it } from 'vitest'
import type { EventLog, Position } from '../../src/control/log/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { useFixture } from '../support/fixture.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { routeApplied, routeSubject } from './events.ts'

const at = (position: number) => position as Position

const contents = async (log: EventLog) =>
  (await Array.fromAsync(log.read())).map(({ event }) => event.subject.split('.').at(-1))

/** Collects the sequences from which clients begin to read the stream. */
async function watchReaders(connection: NatsConnection): Promise<number[]> {
  const starts: number[] = []
  connection.subscribe('$JS.API.CONSUMER.CREATE.SLUICE_EVENTS.>', {
    callback: (_, message) => {
      const { config } = message.json() as { config: { opt_start_seq?: number } }
      starts.push(config.opt_start_seq ?? 1)
    },
  })
  await connection.flush()
  return starts
}

describeWithParts(['nats-server'], 'the stored index of a NATS log', () => {
  const server = useFixture(
    () => startNatsServer(),
    (part) => part.remove(),
  )

  it('lets a process open the log without reading it, and is ignored for another stream', async () => {
    const open = () => openNatsLog({ servers: server.url })
    const log = await open()
    const names = Array.from({ length: 5_500 }, (_, index) => `r${index}`)
    for (let from = 0; from < names.length; from += 500) {
      await log.append(names.slice(from, from + 500).map((name) => routeApplied(name)))
    }
    await log.saveSnapshot({ position: at(5_500), foldVersion: '1', chunks: [] })
    await log.append([routeApplied('after')])
    await log.close()

    const connection = await connect({ servers: server.url })
    const starts = await watchReaders(connection)
    const again = await open()
    expect(await again.lastPosition()).toBe(5_501)
    await connection.flush()
    expect(starts).toEqual([5_501])
    expect(await again.append([routeApplied('r7'), routeApplied('new')])).toMatchObject({
      value: [8, 5_502],
    })
    const expectedVersion = new Map([[routeSubject('r7'), at(7)]])
    expect(await again.append([routeApplied('r7', 2)], { expectedVersion })).toMatchObject({
      problems: [{ actual: 8 }],
    })
    expect(await contents(again)).toEqual([...names, 'after', 'new'])
    await again.close()

    const { streams } = await jetstreamManager(connection)
    await streams.delete('SLUICE_EVENTS')
    const other = await open()
    await other.append([routeApplied('r7')])
    expect(await contents(other)).toEqual(['r7'])
    await other.close()
    await connection.close()
  })
})
