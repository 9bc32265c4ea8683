import { describe, expect, it } from 'vitest'
import { createEvent, desiredPublished } from '../../../events/index.ts'
import fc from '../../../test/support/fast-check.ts'
import { randomLog } from '../../../test/support/random-log.ts'
import { createFold, type Digests, foldVersion, type RecordedEvent, replay } from './index.ts'

const options = { checkRegex: () => undefined }

function published(version: number, { desired, status }: Digests): RecordedEvent['event'] {
  const context = { source: '/test', time: '2027-01-01T00:00:00.000Z', epoch: 0 }
  return createEvent(desiredPublished, context, {
    id: `published-${version}`,
    subject: 'x',
    data: { version, digest: desired, statusDigest: status, upserted: 0, removed: 0, foldVersion },
  })
}

/** Records the digests of some positions, each `delay` events later, as a controller does. */
function withPublished(
  events: readonly RecordedEvent[],
  delays: readonly number[],
  change: (digests: Digests) => Digests = (digests) => digests,
): RecordedEvent[] {
  const fold = createFold(options)
  const recorded: RecordedEvent[] = []
  const due: { at: number; version: number; digests: Digests }[] = []
  const record = (event: RecordedEvent['event']) => {
    const entry = { position: recorded.length + 1, event }
    recorded.push(entry)
    fold.apply(entry)
  }
  events.forEach(({ event }, index) => {
    record(event)
    const delay = delays[index % delays.length] ?? 0
    const last = due.at(-1)?.at ?? 0
    const { position: version } = fold
    if (delay < 5) due.push({ at: Math.max(index + delay, last), version, digests: fold.digests() })
    while (due[0] !== undefined && due[0].at <= index) {
      const { version: position, digests } = due.shift() as (typeof due)[0]
      record(published(position, change(digests)))
    }
  })
  return recorded
}

const delays = fc.array(fc.nat(9), { minLength: 1, maxLength: 7 })

describe('a replay', () => {
  it('arrives at the digests that were published about earlier positions', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, delays, async (events, late) => {
        const recorded = withPublished(events, late)
        const result = await replay(recorded, options)
        expect(result).toMatchObject({ different: [], incomparable: 0, events: recorded.length })
        expect(result.fold.position).toBe(recorded.length)
      }),
      { numRuns: 100 },
    )
  })

  it('finds every published state with another digest', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, delays, async (events, late) => {
        const recorded = withPublished(events, late, (digests) => ({ ...digests, desired: 'x' }))
        const { different, published: count } = await replay(recorded, options)
        expect(different.length).toBe(count)
      }),
      { numRuns: 50 },
    )
  })
})
