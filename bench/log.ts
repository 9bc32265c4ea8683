/**
 * What the log costs: appends to the embedded log (durable, in a folder on disk), and reading all of
 * it again.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEvent, messageId, resourceApplied } from '../events/index.ts'
import { openEmbeddedLog, type Position, subjectOf } from '../src/log/index.ts'
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
  await log.close()
  begun = performance.now()
  const reopened = openEmbeddedLog(join(folder, 'events.db'))
  const reopenMs = performance.now() - begun
  await reopened.log.close()
  rmSync(folder, { recursive: true })
  return {
    'log.append.one-by-one': oneByOne,
    'log.append.batches-of-100': inBatches,
    'log.replay': replayed,
    'log.reopen-20500-events': reopenMs,
  }
}

export default async function log({ rounds }: BenchContext): Promise<Row[]> {
  await measure()
  const samples = await Array.fromAsync({ length: rounds }, () => measure())
  return Object.keys(samples[0] ?? {}).map((id) => ({
    id,
    unit: id.includes('reopen') ? 'ms' : 'events/s',
    own: samples.map((sample) => sample[id] ?? Number.NaN),
  }))
}
