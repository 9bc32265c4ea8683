import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../../test/support/wait-for.ts'
import { assembleSharedDelta, encodeResource } from '../../../control/wire/encode.ts'
import type { DesiredDelta, ResourceKey, ServiceResource } from '../../../ground/model/resources.ts'
import type { FromWorker, WorkerState } from './worker-messages.ts'
import { WorkerSession } from './worker-session.ts'

const service = (name: string): ServiceResource => ({
  type: 'service',
  key: `service/ns/${name}`,
  namespace: 'ns',
  name,
  ports: [],
  publishNotReady: false,
})

/** A session of a worker that rejects every service called `refused`. */
function openSession() {
  const states: WorkerState[] = []
  const plane = {
    portConflicts: () => [],
    apply: ({ upserted }: DesiredDelta) => ({
      rejected: upserted
        .filter(({ resource }) => resource.key.endsWith('/refused'))
        .map(({ resource: { key } }) => ({ key, code: 'bug', message: 'refused' })),
      ports: [],
    }),
  }
  const send = (message: FromWorker) => {
    if (message.type === 'state') states.push(message.state)
  }
  type Parts = ConstructorParameters<typeof WorkerSession>[0]
  const session = new WorkerSession({ plane, send } as unknown as Parts)
  const receive = (
    sequence: number,
    upserted: readonly ServiceResource[],
    { removed = [], ...part }: { removed?: readonly ResourceKey[]; isPart?: true } = {},
  ) => {
    const pieces = upserted.map((resource) => encodeResource({ version: `${sequence}`, resource }))
    const bytes = assembleSharedDelta(sequence, pieces, removed)
    session.receive({ type: 'config', sequence, bytes, ...part })
  }
  return { states, receive }
}

describe('the session of a worker', () => {
  it('reports rejections of resources that were prepared with the sequence of the first state', async () => {
    const { states, receive } = openSession()
    receive(0, [service('refused')], { isPart: true })
    receive(7, [service('a')])
    receive(9, [service('b')])
    await waitFor('both states', () => states.length === 2)
    const refused = { key: 'service/ns/refused', code: 'bug', message: 'refused', sequence: 7 }
    expect(states.map(({ sequence, rejected }) => [sequence, rejected])).toEqual([
      [7, [refused]],
      [9, [refused]],
    ])
  })

  it('forgets the rejection of a prepared resource that the first state does not have', async () => {
    const { states, receive } = openSession()
    receive(0, [service('refused')], { isPart: true })
    receive(7, [], { removed: ['service/ns/refused'] })
    await waitFor('the first state', () => states.length === 1)
    expect(states.map(({ rejected }) => rejected)).toEqual([[]])
  })
})
