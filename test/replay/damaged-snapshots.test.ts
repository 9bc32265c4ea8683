/** A snapshot is a cache: damage to one changes the time that an answer takes, and never the answer. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { captureState, restoreState } from '../../src/control/plane/stored-state.ts'
import { ResourceIndex } from '../../src/control/watch/resource-index.ts'
import { createFold, type Fold } from '../../src/past/replay/index.ts'
import { readState } from '../../src/tools/cli/recording/recording.ts'
import fc from '../support/fast-check.ts'
import { FoldStory } from '../support/fold-story.ts'
import { gateway } from '../support/manifests.ts'

/** Number of objects, which is large enough for several chunks. */
const services = 900
const [early, late] = [600, services]

const folder = mkdtempSync(join(tmpdir(), 'sluice-damaged-'))
const whole = join(folder, 'whole.db')
let expected: ReturnType<typeof contentOf>
afterAll(() => rmSync(folder, { recursive: true }))

const contentOf = (fold: Fold) => ({ digests: fold.digests(), statuses: fold.statuses() })

beforeAll(async () => {
  const story = new FoldStory()
  const spec = { ports: [{ name: 'http', port: 80 }] }
  const service = (n: number) => ({
    ...{ apiVersion: 'v1', kind: 'Service' },
    metadata: { name: `s${n}` },
    spec,
  })
  for (let n = 0; n < services; n++) story.apply(service(n))
  story.apply(JSON.parse(JSON.stringify(gateway(8080))))
  const { log } = openEmbeddedLog(whole)
  await log.append(story.events.map(({ event }): SluiceEvent => event))
  const fold = createFold({ checkRegex: regexProblem })
  for await (const recorded of log.read()) {
    fold.apply(recorded)
    if (recorded.position !== early && recorded.position !== late) continue
    await log.saveSnapshot(captureState(fold, new ResourceIndex('/sluice/files')))
  }
  await log.close()
  expected = contentOf(fold)
})

/** The number of the chunk with the second 250 objects. Without it, the state is still JSON. */
const moreObjects = 5

/** A random number below 1, which chooses what is damaged. */
type Choice = number

const damages: Readonly<Record<string, (file: DatabaseSync, choice: Choice) => void>> = {
  'a changed bit': (file, choice) =>
    change(file, choice, (body) => {
      const bit = Math.floor(choice * body.length * 8)
      body[bit >> 3] = (body[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      return body
    }),
  'a shortened chunk': (file, choice) =>
    change(file, choice, (body) => body.subarray(0, Math.floor(choice * body.length))),
  'a missing chunk': (file, choice) => {
    file
      .prepare('DELETE FROM snapshots WHERE position = ? AND chunk = ?')
      .run(late, choice < 0.5 ? moreObjects : at(file, choice))
  },
  'a repeated chunk': (file) => {
    const next = `SELECT body FROM snapshots WHERE position = ${late} AND chunk = ${moreObjects + 1}`
    file.exec(
      `UPDATE snapshots SET body = (${next}) WHERE position = ${late} AND chunk = ${moreObjects}`,
    )
  },
  'all of another snapshot': (file) => {
    file.exec(`DELETE FROM snapshots WHERE position = ${late} AND chunk >= 0`)
    file.exec(`INSERT INTO snapshots SELECT ${late}, fold_version, chunk, body
               FROM snapshots WHERE position = ${early} AND chunk >= 0`)
  },
  'a snapshot without a seal, with the state of another position': (file, choice) => {
    const texts = ['null', '{}', '[]', '{"fold":{}}', `{"fold":{"position":${late}}}`, '1']
    file.exec(`DELETE FROM snapshots WHERE position = ${late} AND chunk > 0`)
    file.exec(`UPDATE snapshots SET body = x'' WHERE position = ${late} AND chunk = -1`)
    file
      .prepare('UPDATE snapshots SET body = ? WHERE position = ? AND chunk = 0')
      .run(Buffer.from(texts[Math.floor(choice * texts.length)] ?? ''), late)
  },
}

const chunksOf = (file: DatabaseSync) =>
  file.prepare('SELECT chunk, body FROM snapshots WHERE position = ? AND chunk >= 0').all(late)

const at = (file: DatabaseSync, choice: Choice) => Math.floor(choice * chunksOf(file).length)

function change(file: DatabaseSync, choice: Choice, changed: (body: Uint8Array) => Uint8Array) {
  const chunk = at(file, choice)
  const body = changed(Uint8Array.from(chunksOf(file)[chunk]?.body as Uint8Array))
  file
    .prepare('UPDATE snapshots SET body = ? WHERE position = ? AND chunk = ?')
    .run(body, late, chunk)
}

it.each(Object.keys(damages))('%s is noticed, and an earlier snapshot is used', async (name) => {
  await fc.assert(
    fc.asyncProperty(fc.double({ min: 0, max: 0.999, noNaN: true }), async (choice) => {
      const path = join(folder, 'damaged.db')
      copyFileSync(whole, path)
      const file = new DatabaseSync(path)
      damages[name]?.(file, choice)
      file.close()
      const notices: string[] = []
      const options = { derivation: { checkRegex: regexProblem } }
      const { fold } = await readState({ logFile: path }, (text) => notices.push(text), options)
      expect(contentOf(fold)).toEqual(expected)
      expect(notices).toEqual([expect.stringContaining(`the snapshot at position ${late} `)])
      const { log } = openEmbeddedLog(path)
      const warnings: string[] = []
      const restored = await restoreState(log, '/sluice/files', (text) => warnings.push(text))
      expect(restored.from).toBe(early + 1)
      expect(warnings).toHaveLength(1)
      await log.close()
      rmSync(path)
    }),
    { numRuns: 6 },
  )
})
