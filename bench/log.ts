/**
 * What the log costs: appends to the embedded log (durable, in a folder on disk), reading all of it
 * again, and its bytes on disk as soon as old events are packed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createEvent, messageId, resourceApplied } from '../events/index.ts'
import { openEmbeddedLog, type Position, subjectOf } from '../src/control/log/index.ts'
import type { BenchContext, Row } from './harness.ts'

/** An event about a route of ordinary size, about 900 bytes of JSON. */
function routeApplied(number: number) {
  const name = `route-${number}`
  const context = { source: '/sluice/bench', time: '2026-01-02T03:04:05.000Z', epoch: 0 }
  const rule = (path: string) => ({
    matches: [{ path: { type: 'PathPrefix', value: path } }],
    backendRefs: [{ name: 'service', port: 8080 }],
  })
  const spec = {
    parentRefs: [{ name: 'web' }],
    hostnames: [`${name}.example`],
    rules: [rule('/a'), rule('/b')],
  }
  return createEvent(resourceApplied, context, {
    id: messageId(0, name, '1', resourceApplied.type),
    subject: subjectOf({ cluster: 'bench', kind: 'HTTPRoute', namespace: 'shop', name }),
    data: {
      kind: 'HTTPRoute',
      namespace: 'shop',
      name,
      uid: name,
      resourceVersion: '1',
      generation: 1,
      object: {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'HTTPRoute',
        metadata: { name, namespace: 'shop' },
        spec,
      },
    },
  })
}

/** Waits until the older events are packed, and returns the bytes that are in use, without free pages. */
async function bytesWhenPacked(file: string): Promise<number> {
  const database = new DatabaseSync(file, { readOnly: true })
  const numberOf = (query: string) => Number(Object.values(database.prepare(query).get() ?? {})[0])
  while (numberOf('SELECT count(*) FROM events') >= 384) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const pages = numberOf('PRAGMA page_count') - numberOf('PRAGMA freelist_count')
  const bytes = pages * numberOf('PRAGMA page_size')
  database.close()
  return bytes
}

const secondsSince = (begun: number) => (performance.now() - begun) / 1000

/** One round on a fresh file: events a second for each way to use the log. */
async function measure(): Promise<Record<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const { log } = openEmbeddedLog(join(folder, 'events.db'))
  const single = Array.from({ length: 500 }, (_, index) => routeApplied(index))
  const batched = Array.from({ length: 20_000 }, (_, index) => routeApplied(1_000 + index))
  let begun = performance.now()
  for (const event of single) await log.append([event])
  const oneByOne = single.length / secondsSince(begun)
  begun = performance.now()
  for (let first = 0; first < batched.length; first += 100) {
    await log.append(batched.slice(first, first + 100))
  }
  const inBatches = batched.length / secondsSince(begun)
  begun = performance.now()
  let count = 0
  for await (const { event } of log.read({ from: 1 as Position })) count += event.epoch + 1
  const replayed = count / secondsSince(begun)
  const file = join(folder, 'events.db')
  const bytes = await bytesWhenPacked(file)
  await log.close()
  begun = performance.now()
  const reopened = openEmbeddedLog(file)
  const reopenMs = performance.now() - begun
  await reopened.log.close()
  rmSync(folder, { recursive: true })
  return {
    'log.append.one-by-one': oneByOne,
    'log.append.batches-of-100': inBatches,
    'log.replay': replayed,
    'log.reopen-20500-events': reopenMs,
    'log.bytes-an-event': bytes / (single.length + batched.length),
  }
}

const kinds: Readonly<Record<string, Pick<Row, 'unit' | 'bound'>>> = {
  'log.reopen-20500-events': { unit: 'ms' },
  'log.bytes-an-event': { unit: 'bytes', bound: { atMost: 600 } },
}

export default async function log({ rounds }: BenchContext): Promise<Row[]> {
  await measure()
  const samples = await Array.fromAsync({ length: rounds }, () => measure())
  return Object.keys(samples[0] ?? {}).map((id) => ({
    id,
    ...(kinds[id] ?? { unit: 'events/s' }),
    own: samples.map((sample) => sample[id] ?? Number.NaN),
  }))
}
