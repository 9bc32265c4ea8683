/** The state at any position is the same, whether it is folded from a snapshot or from the beginning. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { readExport } from '../../src/control/log/export.ts'
import { openEmbeddedLog, type Position } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { captureState } from '../../src/control/plane/stored-state.ts'
import { ResourceIndex } from '../../src/control/watch/resource-index.ts'
import { createFold, type Fold, foldEvents } from '../../src/past/replay/index.ts'
import { readState } from '../../src/tools/cli/recording/recording.ts'
import fc from '../support/fast-check.ts'
import { randomLog } from '../support/random-log.ts'

const derivation = { checkRegex: regexProblem }
const examples = join(import.meta.dirname, '..', '..', 'examples')
const names = readdirSync(examples, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('recorded.jsonl'))
  .sort()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-nearest-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const contentOf = (fold: Fold) => ({
  position: fold.position,
  digests: fold.digests(),
  statuses: fold.statuses(),
  resources: fold.resources().toSorted((a, b) => (a.resource.key < b.resource.key ? -1 : 1)),
  proxies: fold.proxies(),
})

/** Stores the events in a log file, and a snapshot at each of the positions. */
async function store(
  path: string,
  events: readonly SluiceEvent[],
  positions: readonly number[],
): Promise<void> {
  const { log } = openEmbeddedLog(path)
  await log.append(events)
  const fold = createFold(derivation)
  for await (const recorded of log.read()) {
    fold.apply(recorded)
    if (positions.includes(recorded.position)) {
      await log.saveSnapshot(await captureState(fold, new ResourceIndex('/sluice/files')))
    }
  }
  await log.close()
}

async function expectSame(events: readonly SluiceEvent[], shares: readonly number[]) {
  const path = join(folder, `${Math.random()}.db`)
  const positions = shares.map((share) => 1 + Math.floor(share * (events.length - 1)))
  await store(path, events, positions)
  for (const share of [...shares, 0.1, 0.5, 1]) {
    const at = Math.max(1, Math.round(share * events.length))
    const notices: string[] = []
    const report = (text: string) => notices.push(text)
    const { fold } = await readState({ logFile: path, at: `${at}` }, report, { derivation })
    const entries = events.slice(0, at).map((event, n) => ({ position: n + 1, event }))
    expect(contentOf(fold)).toEqual(contentOf(await foldEvents(entries, derivation)))
    expect(notices).toEqual([])
  }
}

const someShares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
  minLength: 1,
  maxLength: 3,
})

describe('the state at a position, folded from the nearest snapshot', () => {
  it.each(names)('is that of a fold from the beginning, in %s', async (name) => {
    const recorded = await Array.fromAsync(readExport(join(examples, name)))
    const events = recorded.map(({ event }) => event)
    await fc.assert(
      fc.asyncProperty(someShares, (shares) => expectSame(events, shares)),
      { numRuns: 2 },
    )
  })

  it('is that of a fold from the beginning, in generated logs', async () => {
    await fc.assert(
      fc.asyncProperty(randomLog, someShares, (log, shares) => {
        return expectSame(
          log.map(({ event }, n) => ({ ...event, id: `${n}` })),
          shares,
        )
      }),
      { numRuns: 30 },
    )
  })

  it('is folded from the beginning if no snapshot is of this fold version, which is reported', async () => {
    const recorded = await Array.fromAsync(readExport(join(examples, names[0] ?? '')))
    const path = join(folder, 'events.db')
    const { log } = openEmbeddedLog(path)
    await log.append(recorded.map(({ event }) => event))
    await log.saveSnapshot({ position: 3 as Position, foldVersion: 'other', chunks: [] })
    await log.close()
    const notices: string[] = []
    const { fold } = await readState({ logFile: path }, (text) => notices.push(text))
    expect(contentOf(fold)).toEqual(contentOf(await foldEvents(recorded, derivation)))
    expect(notices.join()).toMatch(/no usable snapshot is of fold version/)
  })
})
