import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.ts'
import { Fold } from '../actors/fold.ts'
import { createGraph } from '../desired/derivations.ts'
import { MemoryLog } from '../log/index.ts'
import { ResourceIndex } from '../watch/resource-index.ts'
import { Leadership } from './leadership.ts'

it('a new leader may write the log during the listing, and the cluster only after it', async () => {
  const log = new MemoryLog()
  const fold = new Fold(createGraph({ checkRegex: () => undefined }))
  const listed = Promise.withResolvers<void>()
  const written: (number | undefined)[] = []
  let isListing = false
  let epoch: number | undefined = 7
  const leadership: Leadership = new Leadership({
    isShared: true,
    replica: 'a',
    writer: {
      append: async (_, events) => {
        await log.append(events)
        return log.lastPosition()
      },
      lastPosition: () => log.lastPosition(),
    },
    fold,
    index: new ResourceIndex('/test'),
    source: {
      lead: () => {
        isListing = true
        return listed.promise
      },
      follow: () => undefined,
    },
    reconciler: {
      folded: async () => {
        for await (const recorded of log.read()) fold.apply(recorded)
      },
      appendDecisions: () => undefined,
    },
    lease: { epoch: () => epoch, resign: async () => undefined },
    onWriting: () => written.push(leadership.writingEpoch()),
    onStopped: () => undefined,
    notify: () => undefined,
  })
  leadership.acquired(7)
  await waitFor('the listing', () => isListing)
  expect([leadership.logEpoch(), leadership.writingEpoch()]).toEqual([7, undefined])
  listed.resolve()
  await waitFor('writing', () => written.length > 0)
  expect(written).toEqual([7])
  epoch = undefined
  expect([leadership.logEpoch(), leadership.writingEpoch()]).toEqual([undefined, undefined])
  await log.close()
})
