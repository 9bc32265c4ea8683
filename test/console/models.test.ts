/** View-models without a browser: what views show of each moment is what a fold of the events gives. */

import { describe, expect, it } from 'vitest'
import { linesOf } from '../../console/log/lines.ts'
import { LoadedLog, type Moment } from '../../console/log/loaded-log.ts'
import { diffModel } from '../../console/models/diff.ts'
import { expectationModel } from '../../console/models/expectation.ts'
import { objectModel } from '../../console/models/object.ts'
import { objectsModel } from '../../console/models/objects.ts'
import { overviewModel } from '../../console/models/overview.ts'
import { searchModel } from '../../console/models/search.ts'
import { timelineModel } from '../../console/models/timeline.ts'
import { snapshotLines } from '../../src/control/log/export.ts'
import { exportLine, maxLineBytes } from '../../src/control/log/export-lines.ts'
import type { Position, Recorded } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { objectKey } from '../../src/ground/model/names.ts'
import {
  createFold,
  type Fold,
  foldVersion,
  type RecordedEvent,
} from '../../src/past/replay/index.ts'
import fc from '../support/fast-check.ts'
import { randomLog } from '../support/random-log.ts'
import { incidentEvents, incidentLog } from './browser.ts'

const utf8 = new TextEncoder()

function list(text: string): LoadedLog {
  const log = new LoadedLog('log.jsonl', { nearEnough: 0 })
  for (const line of text.split('\n')) log.events.add(utf8.encode(line))
  return log
}

function load(text: string): LoadedLog {
  const log = list(text)
  while (log.folded < log.events.length) log.foldNext()
  return log
}

const exportOf = (events: readonly RecordedEvent[]) =>
  events.map((event) => exportLine(event as Recorded)).join('')

const withoutRegexes = { checkRegex: regexProblem }

/** An export with the states after some of its events. */
async function exportWithStates(
  events: readonly RecordedEvent[],
  positions: readonly number[],
  writer = foldVersion,
): Promise<string> {
  const fold = createFold(withoutRegexes)
  let text = ''
  for (const recorded of events) {
    fold.apply(recorded)
    text += exportLine(recorded as Recorded)
    if (!positions.includes(recorded.position)) continue
    const chunk = Buffer.from(JSON.stringify({ fold: fold.snapshot() }))
    const position = recorded.position as Position
    text += (await snapshotLines({ position, foldVersion: writer, chunks: [chunk] })).join('')
  }
  return text
}

/** Compares everything that a moment has with the fold of the events up to it. */
function expectMoment(moment: Moment, fold: Fold): void {
  expect(moment.position).toBe(fold.position)
  expect(new Map(moment.statuses.entries())).toEqual(
    new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status])),
  )
  expect(new Map(moment.resources.entries())).toEqual(
    new Map(fold.resources().map((one) => [one.resource.key, one])),
  )
  const known = [...fold.graph.objects()].map(({ ref, generation, object, refused }) => ({
    key: objectKey(ref),
    generation,
    manifest: object,
    problems: refused?.problems,
  }))
  const shown = [...moment.objects.entries()].map(([key, version]) => ({
    key,
    generation: version.generation,
    manifest: version.applied === undefined ? undefined : moment.log.manifest(version),
    problems: version.refused === undefined ? undefined : moment.log.refusal(version).problems,
  }))
  const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)
  expect(shown.sort(byKey)).toEqual(known.sort(byKey))
  expect(moment.proxies).toEqual(fold.proxies())
}

describe('a loaded log', () => {
  it('has the statuses, resources, objects and proxies of a fold after each event', () => {
    fc.assert(
      fc.property(randomLog, (events) => {
        const log = load(exportOf(events))
        const fold = createFold(withoutRegexes)
        for (const recorded of events) {
          fold.apply(recorded)
          expectMoment(log.at(recorded.position), fold)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('has the same moments in any order if it begins at stored states', async () => {
    await fc.assert(
      fc.asyncProperty(
        randomLog,
        fc.uniqueArray(fc.nat({ max: 60 })),
        fc.array(fc.nat({ max: 60 }), { minLength: 5, maxLength: 20 }),
        async (events, stored, visits) => {
          const last = events.at(-1)?.position ?? 0
          const positions = stored.map((at) => (at % last) + 1)
          const log = list(await exportWithStates(events, positions))
          await log.begin()
          for (const visit of visits) {
            const position = (visit % last) + 1
            await log.reach(log.events.indexAt(position))
            const fold = createFold(withoutRegexes)
            for (const recorded of events) if (recorded.position <= position) fold.apply(recorded)
            const moment = log.at(position)
            expectMoment(moment, fold)
            // Segments share one fold, which moves between them.
            if (visit % 2 === 0) expect(moment.fold().digests()).toEqual(fold.digests())
          }
          expect([...log.notices]).toEqual([])
        },
      ),
      { numRuns: 60 },
    )
  })

  it('has the same moments if its newest state lends its fold to earlier ones', async () => {
    const visited = fc.array(fc.nat({ max: 60 }), { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(randomLog, visited, async (events, visits) => {
        const last = events.at(-1)?.position ?? 0
        const log = list(await exportWithStates(events, [1, last >> 1, last - 1]))
        await log.begin(log.states.nearest(last))
        const expectAt = async (position: number) => {
          await log.reach(log.events.indexAt(position))
          const fold = createFold(withoutRegexes)
          for (const recorded of events) if (recorded.position <= position) fold.apply(recorded)
          const moment = log.at(position)
          expectMoment(moment, fold)
          return { shown: moment.fold(), fold }
        }
        for (const visit of visits) await expectAt((visit % last) + 1)
        // The newest state has lent its fold, and goes on with another one.
        while (log.folded < log.events.length) log.foldNext()
        for (const position of [last, ...visits.map((visit) => (visit % last) + 1)]) {
          const { shown, fold } = await expectAt(position)
          expect(shown.digests()).toEqual(fold.digests())
        }
      }),
      { numRuns: 60 },
    )
  })

  it('replaces events that are gone by a stored state, and reports which one', async () => {
    const events = await incidentEvents()
    const [middle, last] = [10, events.length]
    const text = await exportWithStates(events, [middle])
    const purged = text.split('\n').filter((line) => !/^\{"position":([1-9]|10),/.test(line))
    const log = list(purged.join('\n'))
    await log.begin()
    while (log.folded < log.events.length) log.foldNext()
    const fold = createFold(withoutRegexes)
    for (const recorded of events) fold.apply(recorded)
    expectMoment(log.at(last), fold)
    expect([...log.notices]).toEqual([
      'The log begins at position 11: states begin with the one that was stored at 10.',
    ])
    await expect(log.reach(-1)).resolves.toBeUndefined()
    expect(() => log.at(3)).toThrow(
      'The state after event 3 is not known: earlier events are gone.',
    )
  })

  it('does not use stored states that are damaged, or of another fold version', async () => {
    const events = await incidentEvents()
    const last = events.length
    const fold = createFold(withoutRegexes)
    for (const recorded of events) fold.apply(recorded)
    const other = list(await exportWithStates(events, [5, 20], '4'))
    expect(other.isSoonKnown(last - 1)).toBe(false)
    expect(other.states.others.map(({ foldVersion: writer }) => writer)).toEqual(['4', '4'])
    const damaged = list(
      (await exportWithStates(events, [5, last - 1])).replaceAll(
        /"gzip":"....../g,
        '"gzip":"AAAAAA',
      ),
    )
    for (const log of [other, damaged]) {
      await log.begin()
      while (log.folded < log.events.length) log.foldNext()
      await log.reach(last - 1)
      expectMoment(log.at(last), fold)
    }
  })

  it('folds again for what only derivations know, at any moment', async () => {
    const log = load(await incidentLog())
    const [route, service] = ['HTTPRoute/shop/cart', 'Service/pay/api']
    const isReadAt = async (position?: number) => {
      const { reads } = await objectModel(log.at(position), { object: route, derivations: 'reads' })
      return reads.some(({ object }) => object === service)
    }
    const [, deleted = 0] = log.events.about('ReferenceGrant/pay/allow')
    const permitted = log.events.positions[deleted - 1]
    expect(await isReadAt(permitted)).toBe(true)
    // Without the grant, the reference is refused before the Service is read.
    expect(await isReadAt()).toBe(false)
    const { readers } = await objectModel(log.at(permitted), {
      object: service,
      derivations: 'readers',
    })
    expect(readers.map(({ object }) => object)).toContain(route)
  })
})

describe('the view-models of an incident', () => {
  it('name the event that caused a problem, and what it changed', async () => {
    const log = load(await incidentLog())
    const [problem, ...others] = (await overviewModel(log.at())).problems
    expect(others).toEqual([])
    expect(problem).toMatchObject({
      object: 'HTTPRoute/shop/cart',
      title: 'ResolvedRefs is False (RefNotPermitted)',
      health: 'problem',
    })
    const [cause = 0] = problem?.positions ?? []
    expect((await overviewModel(log.at(cause - 1))).problems).toEqual([])
    const { statuses, events } = await diffModel(log.at(cause), { from: cause - 1 })
    expect(events.map(({ type, object }) => [type, object])).toEqual([
      ['resource.deleted', 'ReferenceGrant/pay/allow'],
    ])
    expect(statuses.map(({ object }) => object)).toEqual(['HTTPRoute/shop/cart'])
  })

  it('find when a condition held, objects by words, and events by text', async () => {
    const log = load(await incidentLog())
    const expectation = { object: 'HTTPRoute/shop/cart', type: 'ResolvedRefs', value: 'True' }
    const { holds, flips } = await expectationModel(log.at(), expectation)
    expect([holds, flips.map((flip) => flip.holds)]).toEqual([false, [true, false]])
    const found = async (text: string) => searchModel(log.at(), { text })
    expect((await found('route cart')).objects).toEqual(['HTTPRoute/shop/cart'])
    expect((await found('3')).event?.position).toBe(3)
    expect((await found('2026-01-01 00:00:30Z')).event?.position).toBeGreaterThan(3)
    const { positions } = timelineModel(log.at(), { subject: 'ReferenceGrant/pay/allow' })
    expect(positions).toHaveLength(2)
    expect(objectsModel(log.at(), { health: 'bad' }).rows.map(({ object }) => object)).toEqual([
      'HTTPRoute/shop/cart',
    ])
  })
})

describe('the lines of a stream', () => {
  async function* piecesOf(text: string, size: number) {
    const bytes = utf8.encode(text)
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  const read = async (chunks: AsyncIterable<Uint8Array>) =>
    (await Array.fromAsync(linesOf(chunks))).flat().map((line) => new TextDecoder().decode(line))

  it('are the same wherever the stream is cut', async () => {
    const text = 'one\n\ntwo é😀\nthree'
    for (let size = 1; size < 30; size++) {
      expect(await read(piecesOf(text, size))).toEqual(['one', '', 'two é😀', 'three'])
    }
  })

  it('are refused if one is longer than any event', async () => {
    await expect(read(piecesOf('x'.repeat(maxLineBytes + 1), 65_536))).rejects.toThrow(
      'A line is longer than any event of a log.',
    )
  })
})
