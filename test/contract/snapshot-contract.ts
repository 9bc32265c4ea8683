import { expect, it } from 'vitest'
import type { EventLog, Position } from '../../src/control/log/index.ts'
import { LogError } from '../../src/control/log/index.ts'
import { routeApplied } from './events.ts'

const at = (position: number) => position as Position
const text = (value: string) => new TextEncoder().encode(value)

const stateOf = (position: number, foldVersion = '1') => ({
  position: at(position),
  foldVersion,
  chunks: [text(`state ${position} of ${foldVersion}`)],
})

const names = async (log: EventLog) =>
  (await Array.fromAsync(log.read())).map(
    ({ position, event }) => `${position} ${event.subject.split('.').at(-1)}`,
  )

/** The part of the contract of logs that is about snapshots and purges. */
export function describeSnapshots(log: () => EventLog): void {
  const fill = (count: number) =>
    log().append(Array.from({ length: count }, (_, index) => routeApplied(`r${index + 1}`)))

  it('keeps the chunks of a snapshot as they were', async () => {
    expect(await log().loadSnapshot()).toBeUndefined()
    expect(await log().snapshots()).toEqual([])
    await fill(2)
    await log().saveSnapshot({ position: at(1), foldVersion: '1', chunks: [text('old')] })
    const chunks = [text('one'), text(''), text('three'.repeat(100_000))]
    await log().saveSnapshot({ position: at(2), foldVersion: '2', chunks })
    const snapshot = await log().loadSnapshot()
    expect(snapshot).toMatchObject({ position: 2, foldVersion: '2' })
    expect(snapshot?.chunks.map((chunk) => Buffer.from(chunk).toString())).toEqual(
      chunks.map((chunk) => Buffer.from(chunk).toString()),
    )
  })

  it('keeps every snapshot, and loads the newest one at or before a position', async () => {
    await fill(9)
    for (const position of [7, 1, 4]) await log().saveSnapshot(stateOf(position))
    const load = async (position: number) =>
      (await log().loadSnapshot({ atMost: at(position) }))?.chunks.map((one) =>
        Buffer.from(one).toString(),
      )
    expect(await load(9)).toEqual(['state 7 of 1'])
    expect(await load(7)).toEqual(['state 7 of 1'])
    expect(await load(6)).toEqual(['state 4 of 1'])
    expect(await load(1)).toEqual(['state 1 of 1'])
    expect(await load(0)).toBeUndefined()
    const list = await log().snapshots()
    expect(list.map(({ position, foldVersion }) => [position, foldVersion])).toEqual([
      [1, '1'],
      [4, '1'],
      [7, '1'],
    ])
    for (const { bytes } of list) expect(bytes).toBeGreaterThan(0)
  })

  it('loads only snapshots of the fold version that is asked for', async () => {
    await fill(9)
    await log().saveSnapshot(stateOf(3, 'old'))
    await log().saveSnapshot(stateOf(5, 'new'))
    await log().saveSnapshot(stateOf(8, 'old'))
    expect(await log().loadSnapshot({ foldVersion: 'new' })).toMatchObject({ position: 5 })
    expect(await log().loadSnapshot({ foldVersion: 'new', atMost: at(4) })).toBeUndefined()
    expect(await log().loadSnapshot({ foldVersion: 'old', atMost: at(7) })).toMatchObject({
      position: 3,
    })
  })

  it('removes the snapshots before a purged position', async () => {
    await fill(9)
    for (const position of [2, 4, 6]) await log().saveSnapshot(stateOf(position))
    await log().purgeUpTo(at(3))
    expect((await log().snapshots()).map(({ position }) => position)).toEqual([4, 6])
    expect(await log().loadSnapshot({ atMost: at(5) })).toMatchObject({ position: 4 })
    await expect(log().saveSnapshot(stateOf(2))).rejects.toMatchObject({ code: 'no-snapshot' })
    expect((await log().snapshots()).map(({ position }) => position)).toEqual([4, 6])
  })

  it('keeps a snapshot without chunks', async () => {
    await log().append([routeApplied('a')])
    await log().saveSnapshot({ position: at(1), foldVersion: '1', chunks: [] })
    expect(await log().loadSnapshot()).toEqual({ position: 1, foldVersion: '1', chunks: [] })
  })

  it('refuses a snapshot of a position that the log has not reached', async () => {
    const snapshot = { position: at(1), foldVersion: '1', chunks: [] }
    await expect(log().saveSnapshot(snapshot)).rejects.toMatchObject({ code: 'no-snapshot' })
    expect(await log().loadSnapshot()).toBeUndefined()
  })

  it('purges only events that a stored snapshot covers', async () => {
    await log().append(['a', 'b', 'c'].map((name) => routeApplied(name)))
    await expect(log().purgeUpTo(at(1))).rejects.toBeInstanceOf(LogError)
    await log().saveSnapshot({ position: at(2), foldVersion: '1', chunks: [text('state')] })
    await expect(log().purgeUpTo(at(3))).rejects.toMatchObject({ code: 'no-snapshot' })
    expect(await log().firstPosition()).toBe(1)
    await log().purgeUpTo(at(2))
    expect(await log().firstPosition()).toBe(3)
    expect(await names(log())).toEqual(['3 c'])
  })

  it('rejects a read of purged events instead of skipping them', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    await log().saveSnapshot({ position: at(1), foldVersion: '1', chunks: [] })
    await log().purgeUpTo(at(1))
    await expect(Array.fromAsync(log().read({ from: at(1) }))).rejects.toMatchObject({
      code: 'purged',
    })
    await expect(log().tail(at(1))[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'purged',
    })
  })

  it('continues with the next position after all events were purged', async () => {
    await log().append([routeApplied('a'), routeApplied('b')])
    await log().saveSnapshot({ position: at(2), foldVersion: '1', chunks: [] })
    await log().purgeUpTo(at(2))
    expect(await log().lastPosition()).toBe(2)
    expect(await log().append([routeApplied('c')])).toEqual({ ok: true, value: [3] })
  })
}
