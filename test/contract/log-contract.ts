import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AppendProblem, EventLog, Position, Recorded } from '../../src/control/log/index.ts'
import { beginning, maxEventBytes } from '../../src/control/log/index.ts'
import { routeApplied, routeSubject } from './events.ts'
import { describeSnapshots } from './snapshot-contract.ts'

/** What an implementation supplies to be held to the contract. */
export interface LogRig {
  /** An empty log of its own. */
  open(): Promise<EventLog>
  /** Opens the same storage again; omitted if the storage is only in memory. */
  reopen?(): Promise<EventLog>
  remove(): Promise<void>
}

const at = (position: number) => position as Position
const text = (value: string) => new TextEncoder().encode(value)

async function all(events: AsyncIterable<Recorded>): Promise<Recorded[]> {
  const list: Recorded[] = []
  for await (const recorded of events) list.push(recorded)
  return list
}

async function take(count: number, events: AsyncIterable<Recorded>): Promise<Recorded[]> {
  const list: Recorded[] = []
  for await (const recorded of events) if (list.push(recorded) === count) break
  return list
}

const names = (list: readonly Recorded[]) =>
  list.map(({ position, event }) => `${position} ${event.subject.split('.').at(-1)}`)

const positionsOf = async (append: ReturnType<EventLog['append']>) => {
  const appended = await append
  return appended.ok ? appended.value : appended.problems
}

const problemOf = async (append: ReturnType<EventLog['append']>): Promise<AppendProblem> => {
  const appended = await append
  if (appended.ok) throw new Error('the append succeeded')
  return appended.problems[0]!
}

/** The contract that every log keeps: embedded, in memory and on a server alike. */
export function describeLog(name: string, makeRig: () => LogRig): void {
  describe(`the log contract, for the ${name} log`, () => {
    let rig: LogRig
    let log: EventLog
    beforeEach(async () => {
      rig = makeRig()
      log = await rig.open()
    })
    afterEach(async () => {
      await log.close()
      await rig.remove()
    })

    describeAppend(() => log)
    describeVersions(() => log)
    describeRead(() => log)
    describeTail(() => log)
    describeSnapshots(() => log)

    it('refuses every call after it is closed', async () => {
      await log.append([routeApplied('a')])
      await log.close()
      await log.close()
      const closed = { name: 'LogError', code: 'closed' }
      await expect(log.append([routeApplied('b')])).rejects.toMatchObject(closed)
      await expect(log.lastPosition()).rejects.toMatchObject(closed)
      await expect(all(log.read())).rejects.toMatchObject(closed)
      await expect(log.loadSnapshot()).rejects.toMatchObject(closed)
    })

    it.runIf(makeRig().reopen)(
      'keeps events, ids and the snapshot when it is closed and reopened',
      async () => {
        await log.append([routeApplied('a'), routeApplied('b')])
        await log.saveSnapshot({ position: at(1), foldVersion: '1', chunks: [text('state')] })
        await log.purgeUpTo(at(1))
        await log.close()
        log = await rig.reopen!()
        expect(names(await all(log.read()))).toEqual(['2 b'])
        expect(await positionsOf(log.append([routeApplied('b'), routeApplied('c')]))).toEqual([
          2, 3,
        ])
        const snapshot = await log.loadSnapshot()
        expect(snapshot?.chunks.map((chunk) => Buffer.from(chunk).toString())).toEqual(['state'])
      },
    )

    it.runIf(makeRig().reopen)(
      'keeps a batch whose append was started just before it was closed',
      async () => {
        const append = log.append([routeApplied('a')])
        await log.close()
        await append
        log = await rig.reopen!()
        expect(names(await all(log.read()))).toEqual(['1 a'])
      },
    )
  })
}

function describeAppend(log: () => EventLog): void {
  it('assigns the positions 1, 2, 3 without gaps', async () => {
    expect(await log().lastPosition()).toBe(beginning)
    expect(await positionsOf(log().append([routeApplied('a'), routeApplied('b')]))).toEqual([1, 2])
    expect(await positionsOf(log().append([routeApplied('c')]))).toEqual([3])
    expect(await log().lastPosition()).toBe(3)
  })

  it('returns an event exactly as it was appended', async () => {
    const event = routeApplied('grüße-😀', 1, 'line\nquote " back \\ nul \u0000')
    await log().append([event])
    expect(await all(log().read())).toEqual([{ position: 1, event }])
  })

  it('accepts an empty batch and changes nothing', async () => {
    expect(await positionsOf(log().append([]))).toEqual([])
    expect(await log().lastPosition()).toBe(beginning)
  })

  it('stores an event with a known id only once, and returns its position', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    expect(await positionsOf(log().append([routeApplied('b'), routeApplied('c')]))).toEqual([2, 3])
    expect(await positionsOf(log().append([routeApplied('d'), routeApplied('d')]))).toEqual([4, 4])
    expect(await log().lastPosition()).toBe(4)
  })

  it('refuses a whole batch if one event is above the size limit, and names the event', async () => {
    const large = routeApplied('large', 1, 'é'.repeat(maxEventBytes / 2))
    const problem = await problemOf(log().append([routeApplied('small'), large]))
    expect(problem).toMatchObject({
      reason: 'too-large',
      id: large.id,
      subject: routeSubject('large'),
      limitBytes: maxEventBytes,
    })
    expect(problem.message).toContain(String(maxEventBytes))
    expect(await log().lastPosition()).toBe(beginning)
  })

  it('accepts an event of exactly the size limit', async () => {
    const bytes = Buffer.byteLength(JSON.stringify(routeApplied('a')))
    const event = routeApplied('a', 1, 'x'.repeat(maxEventBytes - bytes))
    expect(await positionsOf(log().append([event]))).toEqual([1])
    const longer = routeApplied('b', 1, 'x'.repeat(maxEventBytes - bytes + 1))
    expect(await problemOf(log().append([longer]))).toMatchObject({ bytes: maxEventBytes + 1 })
  })

  it('keeps batches of concurrent appenders contiguous and in order', async () => {
    const batches = Array.from({ length: 20 }, (_, batch) =>
      Array.from({ length: 5 }, (_, index) => routeApplied(`b${batch}-${index}`)),
    )
    await Promise.all(batches.map((batch) => log().append(batch)))
    const order = (await all(log().read())).map(({ event }) => event.subject.split('.').at(-1)!)
    expect(order).toHaveLength(100)
    for (let first = 0; first < 100; first += 5) {
      const [batch] = order[first]!.split('-')
      expect(order.slice(first, first + 5)).toEqual([0, 1, 2, 3, 4].map((i) => `${batch}-${i}`))
    }
  })
}

function describeVersions(log: () => EventLog): void {
  it('appends only if the expected position is the last one of the log', async () => {
    await log().append([routeApplied('a')], { expectedVersion: beginning })
    const late = log().append([routeApplied('b')], { expectedVersion: beginning })
    expect(await problemOf(late)).toMatchObject({ reason: 'conflict', expected: 0, actual: 1 })
    const right = log().append([routeApplied('b')], { expectedVersion: at(1) })
    expect(await positionsOf(right)).toEqual([2])
  })

  it('appends at the expected versions of subjects, even if other subjects have changed', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    const expectedVersion = new Map([
      [routeSubject('a'), at(1)],
      [routeSubject('new'), beginning],
    ])
    await log().append([routeApplied('other')])
    const batch = [routeApplied('a', 2), routeApplied('new')]
    expect(await positionsOf(log().append(batch, { expectedVersion }))).toEqual([4, 5])
  })

  it('appends nothing if one subject of a batch has another version, and names the subject', async () => {
    await log().append([routeApplied('a'), routeApplied('b'), routeApplied('b', 2)])
    const expectedVersion = new Map([
      [routeSubject('a'), at(1)],
      [routeSubject('b'), at(2)],
    ])
    const batch = [routeApplied('a', 2), routeApplied('b', 3)]
    expect(await problemOf(log().append(batch, { expectedVersion }))).toMatchObject({
      reason: 'conflict',
      subject: routeSubject('b'),
      expected: 2,
      actual: 3,
    })
    expect(await log().lastPosition()).toBe(3)
  })

  it('lets exactly one of several concurrent appends with the same expected version succeed', async () => {
    const racers = ['a', 'b', 'c', 'd'].map((name) =>
      log().append([routeApplied(name)], { expectedVersion: beginning }),
    )
    expect((await Promise.all(racers)).filter(({ ok }) => ok)).toHaveLength(1)
    expect(await log().lastPosition()).toBe(1)
  })

  it('accepts a repeated batch even though its expected version has passed', async () => {
    const batch = [routeApplied('a'), routeApplied('b')]
    await log().append(batch, { expectedVersion: beginning })
    const again = log().append(batch, { expectedVersion: beginning })
    expect(await positionsOf(again)).toEqual([1, 2])
  })

  it('treats a subject whose events were purged as one without events', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    await log().saveSnapshot({ position: at(2), foldVersion: '1', chunks: [] })
    await log().purgeUpTo(at(1))
    const expectedVersion = new Map([[routeSubject('a'), at(1)]])
    expect(await positionsOf(log().append([routeApplied('a', 2)], { expectedVersion }))).toEqual([
      3,
    ])
    const stale = log().append([routeApplied('a', 3)], { expectedVersion })
    expect(await problemOf(stale)).toMatchObject({ reason: 'conflict', actual: 3 })
  })
}

function describeRead(log: () => EventLog): void {
  it('reads an inclusive range from any position', async () => {
    await log().append(['a', 'b', 'c', 'd'].map((name) => routeApplied(name)))
    expect(names(await all(log().read({ from: at(2), to: at(3) })))).toEqual(['2 b', '3 c'])
    expect(names(await all(log().read({ from: at(4) })))).toEqual(['4 d'])
    expect(names(await all(log().read({ to: at(1) })))).toEqual(['1 a'])
    expect(await all(log().read({ from: at(5), to: at(9) }))).toEqual([])
  })

  it('reads only the events of a subject', async () => {
    const batch = Array.from({ length: 1000 }, (_, n) => routeApplied(n % 3 ? `r${n}` : 'a', n))
    await log().append(batch)
    const subject = routeSubject('a')
    const positions = async (range: object) =>
      (await all(log().read({ subject, ...range }))).map(({ position }) => position)
    const expected = Array.from({ length: 334 }, (_, n) => 3 * n + 1)
    expect(await positions({})).toEqual(expected)
    expect(await positions({ from: at(5), to: at(12) })).toEqual([7, 10])
    expect(await positions({ from: at(5), to: at(6) })).toEqual([])
    expect(await all(log().read({ subject: routeSubject('none') }))).toEqual([])
    expect(await all(log().read({ subject: routeSubject('r1'), from: at(3) }))).toEqual([])
  })

  it('reads more events than one page holds, in order', async () => {
    const batch = Array.from({ length: 1100 }, (_, index) => routeApplied(`r${index}`))
    await log().append(batch)
    const list = await all(log().read())
    expect(list.map(({ position }) => position)).toEqual(batch.map((_, index) => index + 1))
    expect(list.map(({ event }) => event.id)).toEqual(batch.map(({ id }) => id))
  })

  it('ends a read at the event that was last when the read began', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    const seen: string[] = []
    for await (const recorded of log().read()) {
      seen.push(...names([recorded]))
      await log().append([routeApplied('later', recorded.position)])
    }
    expect(seen).toEqual(['1 a', '2 b'])
  })
}

function describeTail(log: () => EventLog): void {
  it('delivers existing events to a late tail reader, and then new ones', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    const reading = take(4, log().tail(at(1)))
    await log().append([routeApplied('c')])
    await log().append([routeApplied('d')])
    expect(names(await reading)).toEqual(['1 a', '2 b', '3 c', '4 d'])
  })

  it('starts a tail at the requested position, even a future one', async () => {
    const reading = take(1, log().tail(at(2)))
    await log().append([routeApplied('a')])
    await log().append([routeApplied('b')])
    expect(names(await reading)).toEqual(['2 b'])
  })

  it('is not delayed by a tail reader that stops reading', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    const stuck = log().tail(at(1))[Symbol.asyncIterator]()
    await stuck.next()
    const reading = take(3, log().tail(at(1)))
    await log().append([routeApplied('c')])
    expect(names(await reading)).toEqual(['1 a', '2 b', '3 c'])
    await stuck.return?.()
  })

  it('ends a tail when its signal is aborted, even while it waits', async () => {
    const abort = new AbortController()
    const reading = all(log().tail(at(1), { signal: abort.signal }))
    await log().append([routeApplied('a')])
    abort.abort()
    expect((await reading).length).toBeLessThanOrEqual(1)
  })

  it('ends a tail when the log is closed', async () => {
    const reading = all(log().tail(at(1)))
    await log().lastPosition()
    await log().close()
    expect(await reading).toEqual([])
  })
}
