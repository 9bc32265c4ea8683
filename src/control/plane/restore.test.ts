import { expect, it } from 'vitest'
import { Lease, type LeaseRecord, type LeaseStore } from '../lease/lease.ts'
import { whileHolding } from './restore.ts'

const durationMs = 300

/** One record, as it is kept somewhere. */
function storeOf(record: LeaseRecord): LeaseStore {
  let kept = record
  return {
    read: async () => kept,
    write: async (before, content) => {
      if (before?.version !== kept.version) return undefined
      kept = { ...content, version: `${Number(kept.version) + 1}` }
      return kept
    },
  }
}

function workWith(store: LeaseStore) {
  const log: string[] = []
  const done = whileHolding(
    (options) =>
      new Lease({
        ...options,
        identity: 'b',
        durationMs,
        store,
        onProblem: (text) => log.push(text),
      }),
    durationMs,
    async () => {
      log.push('done')
    },
  )
  return done.then((isDone) => [isDone, ...log])
}

it('restoring runs the work once the lease of a dead replica has expired', async () => {
  const store = storeOf({ version: '1', holder: 'a', durationMs, epoch: 1 })
  expect(await workWith(store)).toEqual([true, 'done'])
})

it('restoring leaves the work to a replica that renews its lease', async () => {
  const store = storeOf({ version: '1', holder: 'a', durationMs, epoch: 1 })
  const renew = setInterval(async () => {
    const before = await store.read(0)
    if (before?.holder === 'a') await store.write(before, before, 0)
  }, durationMs / 5)
  expect(await workWith(store)).toEqual([false])
  clearInterval(renew)
})
