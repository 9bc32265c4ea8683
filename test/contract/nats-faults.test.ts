import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DiscardPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EventLog, Position, Recorded } from '../../src/control/log/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { cutBatch, digestOf, frameHeaders } from '../../src/control/log/nats-frames.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { routeApplied, routeSubject } from './events.ts'
import { expectWholeSnapshots } from './killed-saves.ts'

const at = (position: number) => position as Position
const stream = 'SLUICE_EVENTS'

const namesOf = (list: readonly Recorded[]) =>
  list.map(({ position, event }) => `${position} ${event.subject.split('.').at(-1)}`)

const contents = async (log: EventLog) => namesOf(await Array.fromAsync(log.read()))

/** Names of events in the order of their positions from 1. */
const numbered = (names: readonly string[]) => names.map((name, index) => `${index + 1} ${name}`)

describeWithParts(['nats-server'], 'the log on a NATS server, during failures', () => {
  let server: NatsServer
  let opened: EventLog[]
  const open = async (): Promise<EventLog> => {
    const log = await openNatsLog({ servers: server.url, graceMs: 50 })
    opened.push(log)
    return log
  }
  beforeEach(async () => {
    opened = []
    server = await startNatsServer()
  })
  afterEach(async () => {
    await Promise.all(opened.map((log) => log.close()))
    await server.remove()
  })

  it('loses no event and stores none twice if the server is killed during appends', async () => {
    const log = await open()
    const watcher = await open()
    const seen: Recorded[] = []
    const watching = (async () => {
      for await (const recorded of watcher.tail(at(1))) seen.push(recorded)
    })()
    const names: string[] = []
    let isOver = false
    const appending = (async () => {
      while (!isOver) {
        const batch = [0, 1, 2].map((index) => `r${names.length + index}`)
        const appended = await log.append(batch.map((name) => routeApplied(name)))
        expect(appended.ok).toBe(true)
        names.push(...batch)
      }
    })()
    for (let round = 0; round < 3; round++) {
      const { length } = seen
      await waitFor('more events', () => seen.length >= length + 30)
      await server.kill()
      await server.restart()
    }
    isOver = true
    await appending
    expect(await contents(log)).toEqual(numbered(names))
    await waitFor('all events at the watcher', () => seen.length >= names.length)
    expect(namesOf(seen)).toEqual(numbered(names))
    await watcher.close()
    await watching
    expect(await contents(await open())).toEqual(numbered(names))
  })

  it('keeps complete batches of a killed writer, and every acknowledged one', async () => {
    let acknowledged = -1
    for (const batches of [3, 8]) {
      acknowledged = Math.max(acknowledged, await appendUntilKilled(server.url, batches))
      const log = await open()
      const list = await contents(log)
      expect(list.length % 100).toBe(0)
      expect(list.length).toBeGreaterThanOrEqual((acknowledged + 1) * 100)
      expect(list).toEqual(
        numbered(list.map((_, index) => `b${Math.floor(index / 100)}-${index % 100}`)),
      )
      await log.close()
    }
  })

  it('ignores an unfinished batch permanently', async () => {
    const log = await open()
    const tail = log.tail(at(1))[Symbol.asyncIterator]()
    await log.append([routeApplied('a')])
    expect(namesOf([(await tail.next()).value])).toEqual(['1 a'])
    const late = await publishHalf(server.url, ['x', 'y', 'z'], { base: 1, after: 1 })
    expect(await log.lastPosition()).toBe(1)
    expect(await log.append([routeApplied('b')])).toEqual({ ok: true, value: [2] })
    await late()
    expect(await log.append([routeApplied('y'), routeApplied('c')])).toMatchObject({
      value: [3, 4],
    })
    const expected = ['1 a', '2 b', '3 y', '4 c']
    expect(await contents(log)).toEqual(expected)
    expect(await contents(await open())).toEqual(expected)
    const rest = [await tail.next(), await tail.next(), await tail.next()]
    expect(namesOf(rest.map(({ value }) => value))).toEqual(expected.slice(1))
  })

  it('lets one of several processes with the same expected version append', async () => {
    const logs = await Promise.all([open(), open(), open()])
    for (const round of [0, 1, 2, 3, 4]) {
      const racing = logs.map((log, racer) =>
        log.append([routeApplied(`r${round}-${racer}`), routeApplied(`s${round}-${racer}`)], {
          expectedVersion: at(round * 2),
        }),
      )
      const results = await Promise.all(racing)
      expect(results.filter(({ ok }) => ok)).toHaveLength(1)
      for (const result of results) {
        if (!result.ok) expect(result.problems[0]).toMatchObject({ actual: round * 2 + 2 })
      }
    }
  })

  it('keeps versions exact if several processes append to one subject', async () => {
    const subject = routeSubject('counter')
    const raise = async (log: EventLog): Promise<void> => {
      for (;;) {
        const last = (await Array.fromAsync(log.read())).at(-1)
        const version = last?.event.data as { resourceVersion: string } | undefined
        const next = routeApplied('counter', Number(version?.resourceVersion ?? 0) + 1)
        const expectedVersion = new Map([[subject, at(last?.position ?? 0)]])
        // The same event by another process would be a repetition, so each has an id of its own.
        const event = { ...next, id: `${next.id}:${opened.indexOf(log)}` }
        if ((await log.append([event], { expectedVersion })).ok) return
      }
    }
    const logs = [await open(), await open()]
    for (let round = 0; round < 10; round++) await Promise.all(logs.map(raise))
    const versions = (await Array.fromAsync(logs[0]!.read())).map(
      ({ event }) => (event.data as { resourceVersion: string }).resourceVersion,
    )
    expect(versions).toEqual(Array.from({ length: 20 }, (_, index) => String(index + 1)))
  })

  it('keeps batches of several processes whole', async () => {
    const logs = [await open(), await open()]
    const batches = logs.flatMap((log, writer) =>
      Array.from({ length: 10 }, (_, batch) =>
        log.append([0, 1, 2].map((index) => routeApplied(`w${writer}-${batch}-${index}`))),
      ),
    )
    for (const appended of await Promise.all(batches)) {
      if (!appended.ok) throw new Error('refused')
      const [first = 0] = appended.value
      expect(appended.value).toEqual([first, first + 1, first + 2])
    }
    expect(await logs[0]!.lastPosition()).toBe(60)
    expect(await contents(logs[0]!)).toEqual(await contents(logs[1]!))
  })

  it('leaves only whole snapshots if a process is killed while it saves them', async () => {
    await expectWholeSnapshots(server.url, () => openNatsLog({ servers: server.url }))
  })

  it('keeps all snapshots that two processes save at the same time', async () => {
    const logs = [await open(), await open()]
    await logs[0]!.append(Array.from({ length: 10 }, (_, index) => routeApplied(`r${index}`)))
    const positions = Array.from({ length: 10 }, (_, index) => index + 1)
    await Promise.all(
      positions.map((position) =>
        logs[position % 2]!.saveSnapshot({ position: at(position), foldVersion: '1', chunks: [] }),
      ),
    )
    const stored = await logs[0]!.snapshots()
    expect(stored.map(({ position }) => position)).toEqual(positions)
  })

  it('notices a purge by another process, and continues after it', async () => {
    const [one, other] = [await open(), await open()]
    await one.append(['a', 'b', 'c'].map((name) => routeApplied(name)))
    await one.saveSnapshot({ position: at(2), foldVersion: '1', chunks: [] })
    await one.purgeUpTo(at(2))
    expect(await other.firstPosition()).toBe(3)
    expect(await contents(other)).toEqual(['3 c'])
    expect(await other.append([routeApplied('a')])).toEqual({ ok: true, value: [4] })
    await expect(
      other.saveSnapshot({ position: at(1), foldVersion: '1', chunks: [] }),
    ).rejects.toMatchObject({ code: 'no-snapshot' })
  })

  it('treats messages removed from the stream as purged, and continues counting', async () => {
    const log = await open()
    await log.append(['a', 'b', 'c'].map((name) => routeApplied(name)))
    await log.append([routeApplied('d')])
    await withManager(server.url, (manager) => manager.streams.purge(stream, { seq: 3 }))
    await expect(Array.fromAsync(log.read({ from: at(1) }))).rejects.toMatchObject({
      code: 'purged',
    })
    expect(await contents(log)).toEqual(['3 c', '4 d'])
    const late = await open()
    expect(await contents(late)).toEqual(['4 d'])
    expect(await late.append([routeApplied('e')])).toEqual({ ok: true, value: [5] })
    expect([await log.lostUpTo(), await late.lostUpTo()]).toEqual([2, 3])
  })

  it('continues at the right position after all messages were removed, if a reader has reported it', async () => {
    const log = await open()
    await log.append(['a', 'b', 'c'].map((name) => routeApplied(name)))
    await withManager(server.url, (manager) => manager.streams.purge(stream))
    const late = await open()
    expect(await late.lostUpTo()).toBe(Number.POSITIVE_INFINITY)
    expect(await log.lostUpTo()).toBe(3)
    await log.mend((position) => ({ position, foldVersion: '1', chunks: [] }))
    expect([await log.lostUpTo(), await late.lostUpTo()]).toEqual([0, 0])
    expect(await late.append([routeApplied('d')])).toEqual({ ok: true, value: [4] })
    expect(await contents(log)).toEqual(['4 d'])
  })

  it('continues above every possible position if no reader is left', async () => {
    const log = await open()
    await log.append(['a', 'b'].map((name) => routeApplied(name)))
    await withManager(server.url, (manager) => manager.streams.purge(stream))
    const late = await open()
    await late.mend((position) => ({ position, foldVersion: '1', chunks: [] }))
    const appended = await late.append([routeApplied('c')])
    const [position = 0] = appended.ok ? appended.value : []
    expect(position).toBeGreaterThan(2)
    expect(await contents(log)).toEqual([`${position} c`])
    expect([await log.lostUpTo(), await (await open()).lostUpTo()]).toEqual([0, 0])
  })

  it('treats events before a gap, and a gap at the end, as purged too', async () => {
    const log = await open()
    for (const name of ['a', 'b', 'c']) await log.append([routeApplied(name)])
    const filter = routeApplied('b').subject
    await withManager(server.url, (manager) => manager.streams.purge(stream, { filter }))
    const late = await open()
    expect([await contents(log), await contents(late)]).toEqual([['3 c'], ['3 c']])
    const last = routeApplied('c').subject
    await withManager(server.url, (manager) => manager.streams.purge(stream, { filter: last }))
    await log.mend((position) => ({ position, foldVersion: '1', chunks: [] }))
    const latest = await open()
    expect(await latest.append([routeApplied('d')])).toEqual({ ok: true, value: [4] })
    expect([await contents(log), await contents(late)]).toEqual([['4 d'], ['4 d']])
  })
})

describeWithParts(['nats-server'], 'a stream that cannot hold a log', () => {
  let server: NatsServer
  beforeEach(async () => {
    server = await startNatsServer()
  })
  afterEach(() => server.remove())

  it('is refused if its limits would drop events', async () => {
    await withManager(server.url, (manager) =>
      manager.streams.add({
        name: stream,
        subjects: ['sluice.>'],
        discard: DiscardPolicy.New,
        max_age: 60_000_000_000,
      }),
    )
    await expect(openNatsLog({ servers: server.url })).rejects.toMatchObject({
      code: 'foreign',
      message: expect.stringContaining('max_age'),
    })
  })

  it('is refused if it takes smaller messages than the server must take', async () => {
    await withManager(server.url, (manager) =>
      manager.streams.add({
        name: stream,
        subjects: ['sluice.>'],
        discard: DiscardPolicy.New,
        max_msg_size: 2_000,
      }),
    )
    await expect(openNatsLog({ servers: server.url })).rejects.toMatchObject({
      code: 'foreign',
      message: expect.stringContaining('max_msg_size is 2000'),
    })
  })

  it('is not created by a reader', async () => {
    await expect(openNatsLog({ servers: server.url, create: false })).rejects.toMatchObject({
      code: 'missing',
      message: expect.stringContaining(stream),
    })
  })
})

describe('a NATS server that cannot hold a log', () => {
  it('is refused with its version if that is too old', async () => {
    const info = { version: '2.8.4', proto: 1, headers: true, max_payload: 1_048_576 }
    const old = createServer((socket) => {
      socket.write(`INFO ${JSON.stringify(info)}\r\n`)
      socket.on('data', (data) => {
        if (data.includes('PING')) socket.write('PONG\r\n')
      })
      socket.on('error', () => undefined)
    })
    await once(old.listen(0, '127.0.0.1'), 'listening')
    const { port } = old.address() as { port: number }
    await expect(openNatsLog({ servers: `nats://127.0.0.1:${port}` })).rejects.toMatchObject({
      name: 'LogError',
      code: 'unsupported',
      message: expect.stringContaining('2.8.4'),
    })
    old.close()
  })

  it('is reported without its password if it does not answer', async () => {
    const gone = createServer()
    await once(gone.listen(0, '127.0.0.1'), 'listening')
    const { port } = gone.address() as { port: number }
    await new Promise((resolve) => gone.close(resolve))
    const failed = openNatsLog({ servers: `nats://me:secret@127.0.0.1:${port}` })
    await expect(failed).rejects.toMatchObject({ code: 'storage' })
    await expect(failed).rejects.toThrow(`nats://127.0.0.1:${port}`)
    await expect(failed).rejects.not.toThrow('secret')
  })
})

async function withManager(
  url: string,
  work: (manager: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<unknown>,
): Promise<void> {
  const connection = await connect({ servers: url })
  await work(await jetstreamManager(connection))
  await connection.close()
}

/** Publishes all frames of a batch but the last, as a writer that dies; gives the late last one. */
async function publishHalf(
  url: string,
  names: readonly string[],
  { base, after }: { readonly base: number; readonly after: number },
): Promise<() => Promise<void>> {
  const events = names.map((name) => {
    const event = routeApplied(name)
    const { id, subject } = event
    return { id, subject, body: JSON.stringify(event), digest: digestOf(id) }
  })
  const frames = cutBatch(events, base, 1000)
  const connection = await connect({ servers: url })
  const client = jetstream(connection)
  for (const [index, { subject, frame, body }] of frames.slice(0, -1).entries()) {
    const expect = { lastSequence: after + index }
    await client.publish(subject, body, { headers: frameHeaders(frame), expect })
  }
  return async () => {
    const { subject, frame, body } = frames.at(-1)!
    await client.publish(subject, body, { headers: frameHeaders(frame) })
    await connection.close()
  }
}

/** Lets a child append until it has acknowledged `batches` more, kills it, gives the last one. */
async function appendUntilKilled(url: string, batches: number): Promise<number> {
  const script = join(import.meta.dirname, 'append-forever-nats.ts')
  const child = spawn(process.execPath, ['--no-warnings', script, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let seen = 0
  let last = -1
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line)
    if (++seen === batches) child.kill('SIGKILL')
  }
  expect((await exited)[1]).toBe('SIGKILL')
  return last
}
