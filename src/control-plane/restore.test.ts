import { expect, it } from 'vitest'
import { type LeaseRecord, type LeaseStore, RecordLease } from '../lease/record-lease.ts'
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
      new RecordLease({
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

it('does the work once the lease of a replica that is gone has run out', async () => {
  const store = storeOf({ version: '1', holder: 'a', durationMs, epoch: 1 })
  expect(await workWith(store)).toEqual([true, 'done'])
})

it('leaves the work to a replica that lives', async () => {
  const store = storeOf({ version: '1', holder: 'a', durationMs, epoch: 1 })
  const renew = setInterval(async () => {
    const before = await store.read(0)
    if (before?.holder === 'a') await store.write(before, before, 0)
  }, durationMs / 5)
  expect(await workWith(store)).toEqual([false])
  clearInterval(renew)
})
