/** Runs file sources on real temporary folders, for the tests of the file source. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import type { ResourceEvent } from '../../events/index.ts'
import { secretPaths } from '../../src/control/api/fields.ts'
import { validateObject } from '../../src/control/api/validate.ts'
import { MemoryLog } from '../../src/control/log/index.ts'
import { randomDigestKey } from '../../src/control/watch/digest-key.ts'
import { FileRecords } from '../../src/control/watch/file-records.ts'
import { FileSource, type FileSourceOptions } from '../../src/control/watch/files.ts'
import { ResourceIndex } from '../../src/control/watch/resource-index.ts'
import { formatProblem } from '../../src/control/watch/source-problem.ts'
import { eventually } from './wait-for.ts'

export const sourceName = '/sluice/test/files'

/** Folder of the test that runs; every test has one of its own. */
export let folder: string
/** Log of the test that runs. */
export let log: MemoryLog
let running: Running[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-files-'))
  log = new MemoryLog()
  running = []
})
afterEach(async () => {
  for (const { source } of running) await source.close()
  await log.close()
  chmodSync(folder, 0o755)
  rmSync(folder, { recursive: true, force: true })
  rmSync(recordsFile(), { force: true })
})

export interface Running {
  readonly source: FileSource
  /** One line for each event since it was last asked, and the batches that they came in. */
  news(): string[]
  readonly batches: readonly (readonly ResourceEvent[])[]
  readonly problems: string[]
}

const digestKey = randomDigestKey()

/** File with the records of the test that runs, which all sources of the test share, as restarts do. */
export const recordsFile = () => `${folder}.manifests`

/** A source that appends to the log of the test, after the events that it holds. */
export async function run(
  paths = [folder],
  more: Partial<FileSourceOptions> = {},
): Promise<Running> {
  const index = new ResourceIndex(sourceName)
  for await (const { event } of log.read()) index.apply(event)
  const batches: (readonly ResourceEvent[])[] = []
  const problems: string[] = []
  let taken = 0
  const source = new FileSource({
    paths,
    digestKey,
    validate: validateObject,
    secretPaths,
    records: new FileRecords(recordsFile(), '1'),
    clock: { now: () => 1_767_323_045_678 },
    onProblem: (problem) => problems.push(formatProblem(problem).replaceAll(`${folder}/`, '')),
    onChange: async (events) => {
      const appended = await log.append(events)
      if (!appended.ok) throw new Error(appended.problems[0]?.message)
      batches.push(events)
    },
    ...more,
  })
  const news = () => {
    const fresh = batches.flat().slice(taken)
    taken += fresh.length
    return fresh.map(describeEvent)
  }
  const started = { source, news, batches, problems }
  running.push(started)
  await source.lead(index)
  return started
}

export function describeEvent(event: ResourceEvent): string {
  switch (event.type) {
    case 'dev.sluice.resource.applied.v1':
      return `applied ${event.data.name} generation ${event.data.generation}`
    case 'dev.sluice.resource.refused.v1':
      return `refused ${event.data.name} generation ${event.data.generation}`
    case 'dev.sluice.resource.deleted.v1':
      return `deleted ${event.data.name} (${event.data.cause})`
    case 'dev.sluice.relist.started.v1':
      return 'relist started'
    case 'dev.sluice.relist.finished.v1':
      return `relist finished with ${event.data.count}`
  }
}

export function route(name: string, hostname = 'a.example', extra = ''): string {
  return `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: ${name}${extra}
spec:
  parentRefs:
    - name: web
  hostnames: [${hostname}]
`
}

export const invalid = (name: string) => route(name).replace('spec:', 'spec:\n  hostnams: [x]')

export function write(file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), text)
}

/** The news of a source once they are these; fails with what came in their place. */
export async function expectNews(source: Running, lines: readonly string[]): Promise<void> {
  const seen: string[] = []
  await eventually(() => {
    seen.push(...source.news())
    expect(seen).toEqual(lines)
  })
}

export async function expectProblem(source: Running, problem: string | RegExp): Promise<void> {
  const wanted = typeof problem === 'string' ? problem : expect.stringMatching(problem)
  await eventually(() => expect(source.problems).toContainEqual(wanted))
}

/** Makes the log of the running test an empty one, as if its file had been lost. */
export function loseLog(): void {
  log = new MemoryLog()
}
