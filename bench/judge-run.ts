/**
 * Judges two changes on a folder of records, one after the other, and prints the CPU time of each judgement as JSON.
 * `bench/what-if.ts` runs it in a new process, because a controller makes its first judgement with cold caches.
 */
import { createEvent, protectionSet, relistFinished, type SluiceEvent } from '../events/index.ts'
import { builtInObjects } from '../src/control/plane/api-binding.ts'
import { readNewest } from '../src/past/decisions/read.ts'
import { recordKeyOf } from '../src/past/decisions/ring.ts'
import { Judge } from '../src/past/what-if/judge.ts'
import { FoldStory, type StoryObject } from '../test/support/fold-story.ts'

/** The input, as JSON in the only argument. */
export interface JudgedChanges {
  readonly records: string
  readonly objects: readonly object[]
  /** Each change replaces an object; the second is judged while the first is held. */
  readonly changes: readonly object[]
}

export interface JudgedRun {
  /** CPU time of each judgement in milliseconds. */
  readonly ms: readonly number[]
  readonly requests: number
}

const inForce =
  (make: 'set' | 'listed') =>
  (context: Parameters<typeof createEvent>[1]): SluiceEvent =>
    make === 'set'
      ? createEvent(protectionSet, context, {
          id: make,
          subject: 'x',
          data: { mode: 'Hold' as const },
        })
      : createEvent(relistFinished, context, {
          id: make,
          subject: 'x',
          data: { count: 1, digest: '00' } as never,
        })

export async function judgeChanges({
  records,
  objects,
  changes,
}: JudgedChanges): Promise<JudgedRun> {
  const story = new FoldStory().record(inForce('set'))
  story.apply(...(builtInObjects as StoryObject[]), ...(objects as StoryObject[]))
  story.record(inForce('listed'))
  const digestKey = recordKeyOf(records)
  const judge = new Judge({
    derivation: { checkRegex: () => undefined },
    simulator: digestKey === undefined ? {} : { digestKey },
    records: () => readNewest(records, 50_000),
    catalog: () => Promise.reject(new Error('no costs are compared')),
    pause: () => Promise.resolve(),
  })
  const ms: number[] = []
  let requests = 0
  for (const change of changes) {
    story.apply(change as StoryObject)
    const before = process.cpuUsage()
    const { verdict, held } = await judge.judge(story.fold)
    const { user, system } = process.cpuUsage(before)
    ms.push((user + system) / 1_000)
    requests = (held[0]?.verdict ?? verdict).sample?.requests ?? 0
  }
  return { ms, requests }
}

if (process.argv[2] !== undefined) {
  console.log(JSON.stringify(await judgeChanges(JSON.parse(process.argv[2]) as JudgedChanges)))
}
