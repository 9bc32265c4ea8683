/** View-models without a browser: what views show of each moment is what a fold of the events gives. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { linesOf } from '../../console/log/lines.ts'
import { LoadedLog } from '../../console/log/loaded-log.ts'
import { diffModel } from '../../console/models/diff.ts'
import { expectationModel } from '../../console/models/expectation.ts'
import { objectModel } from '../../console/models/object.ts'
import { objectsModel } from '../../console/models/objects.ts'
import { overviewModel } from '../../console/models/overview.ts'
import { searchModel } from '../../console/models/search.ts'
import { timelineModel } from '../../console/models/timeline.ts'
import { regexProblem } from '../../src/control-plane/api-binding.ts'
import { exportLine, maxLineBytes } from '../../src/log/export-lines.ts'
import type { Recorded } from '../../src/log/index.ts'
import { objectKey } from '../../src/model/names.ts'
import { createFold, type RecordedEvent } from '../../src/replay/index.ts'
import { randomLog } from '../support/random-log.ts'
import { incidentLog } from './browser.ts'

const utf8 = new TextEncoder()

function load(text: string): LoadedLog {
  const log = new LoadedLog('log.jsonl')
  for (const line of text.split('\n')) log.events.add(utf8.encode(line))
  while (log.folded < log.events.length) log.foldNext()
  return log
}

const exportOf = (events: readonly RecordedEvent[]) =>
  events.map((event) => exportLine(event as Recorded)).join('')

describe('a loaded log', () => {
  it('has the statuses, resources, objects and proxies of a fold after each event', () => {
    fc.assert(
      fc.property(randomLog, (events) => {
        const log = load(exportOf(events))
        const fold = createFold({ checkRegex: regexProblem })
        for (const recorded of events) {
          fold.apply(recorded)
          const moment = log.at(recorded.position)
          expect(moment.position).toBe(recorded.position)
          expect(new Map(moment.statuses.entries())).toEqual(
            new Map(fold.statuses().map(([ref, status]) => [objectKey(ref), status])),
          )
          expect(new Map(moment.resources.entries())).toEqual(
            new Map(fold.resources().map((one) => [one.resource.key, one])),
          )
          const known = [...fold.graph.objects()].map((state) => {
            const { ref, generation, object, refused } = state
            return [objectKey(ref), generation, object !== undefined, refused !== undefined]
          })
          const shown = [...moment.objects.entries()].map(([key, version]) => {
            const { generation, applied, refused } = version
            return [key, generation, applied !== undefined, refused !== undefined]
          })
          expect(shown.sort()).toEqual(known.sort())
          expect(moment.proxies).toEqual(fold.proxies())
        }
      }),
      { numRuns: 30 },
    )
  })

  it('folds again for what only derivations know, at any moment', async () => {
    const log = load(await incidentLog())
    const [route, service] = ['HTTPRoute/shop/cart', 'Service/pay/api']
    const isReadAt = (position?: number) => {
      const { reads } = objectModel(log.at(position), { object: route, derivations: 'reads' })
      return reads.some(({ object }) => object === service)
    }
    const [, deleted = 0] = log.events.about('ReferenceGrant/pay/allow')
    const permitted = log.events.positions[deleted - 1]
    expect(isReadAt(permitted)).toBe(true)
    // Without the grant, the reference is refused before the Service is read.
    expect(isReadAt()).toBe(false)
    const { readers } = objectModel(log.at(permitted), { object: service, derivations: 'readers' })
    expect(readers.map(({ object }) => object)).toContain(route)
  })
})

describe('the view-models of an incident', () => {
  it('name the event that caused a problem, and what it changed', async () => {
    const log = load(await incidentLog())
    const [problem, ...others] = overviewModel(log.at()).problems
    expect(others).toEqual([])
    expect(problem).toMatchObject({
      object: 'HTTPRoute/shop/cart',
      title: 'ResolvedRefs is False (RefNotPermitted)',
      health: 'problem',
    })
    const cause = problem?.position ?? 0
    expect(overviewModel(log.at(cause - 1)).problems).toEqual([])
    const { statuses, events } = diffModel(log.at(cause), { from: cause - 1 })
    expect(events.map(({ type, object }) => [type, object])).toEqual([
      ['resource.deleted', 'ReferenceGrant/pay/allow'],
    ])
    expect(statuses.map(({ object }) => object)).toEqual(['HTTPRoute/shop/cart'])
  })

  it('find when a condition held, objects by words, and events by text', async () => {
    const log = load(await incidentLog())
    const expectation = { object: 'HTTPRoute/shop/cart', type: 'ResolvedRefs', value: 'True' }
    const { holds, flips } = expectationModel(log.at(), expectation)
    expect([holds, flips.map((flip) => flip.holds)]).toEqual([false, [true, false]])
    expect(searchModel(log.at(), { text: 'route cart' }).objects).toEqual(['HTTPRoute/shop/cart'])
    expect(searchModel(log.at(), { text: '3' }).event?.position).toBe(3)
    expect(searchModel(log.at(), { text: '2026-01-01 00:00:30Z' }).event?.position).toBeGreaterThan(
      3,
    )
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
