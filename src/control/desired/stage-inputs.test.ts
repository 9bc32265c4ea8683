import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { randomLog } from '../../../test/support/random-log.ts'
import { Fold, type RecordedEvent } from '../actors/fold.ts'
import { createGraph, indexes, stages } from './derivations.ts'
import { Graph } from './graph.ts'

const options = { checkRegex: () => undefined }

/** A fold whose stages derive each new version of an object, whether their inputs change or not. */
const eagerFold = () =>
  new Fold(
    new Graph(
      stages(options).map(({ inputs: _, ...stage }) => stage),
      indexes,
    ),
  )

type Applied = Extract<RecordedEvent['event'], { readonly type: 'dev.sluice.resource.applied.v1' }>
type Spec = Readonly<Record<string, unknown>>

const specOf = ({ data }: Applied) => (data.object as { readonly spec: Spec }).spec

/** Returns versions between two versions of an object, each of which changes one more field of the spec. */
function versionsBetween(before: Applied, after: Applied): Applied[] {
  const versions: Applied[] = []
  let spec = specOf(before)
  for (const [field, value] of Object.entries(specOf(after))) {
    spec = { ...spec, [field]: value }
    const resourceVersion = `${after.data.resourceVersion}.${field}`
    const data = { ...after.data, resourceVersion, object: { ...after.data.object, spec } }
    versions.push({ ...after, data })
  }
  return versions
}

/** Returns the same log, with each change of an HTTPRoute split into changes of one field. */
function inSmallSteps(log: readonly RecordedEvent[]): RecordedEvent[] {
  const known = new Map<string, Applied>()
  const events = log.flatMap(({ event }) => {
    if (event.type !== 'dev.sluice.resource.applied.v1' || event.data.kind !== 'HTTPRoute') {
      return [event]
    }
    const before = known.get(event.data.uid)
    known.set(event.data.uid, event)
    return before === undefined ? [event] : [...versionsBetween(before, event), event]
  })
  return events.map((event, index) => ({ position: index + 1, event }))
}

function expectSame(log: readonly RecordedEvent[]): void {
  const fold = new Fold(createGraph(options))
  const eager = eagerFold()
  for (const event of inSmallSteps(log)) {
    fold.apply(event)
    eager.apply(event)
    expect(fold.digests()).toEqual(eager.digests())
    expect(fold.changedAt).toBe(eager.changedAt)
  }
  expect(fold.resources()).toEqual(eager.resources())
  expect(fold.statuses()).toEqual(eager.statuses())
  for (const { ref } of fold.graph.objects()) {
    expect(fold.graph.derivationsOf(ref)).toEqual(eager.graph.derivationsOf(ref))
  }
}

describe('a stage that reads only a part of its objects', () => {
  it('has the same results as if it derived every version', () => {
    fc.assert(fc.property(randomLog, expectSame), { numRuns: 300 })
  })
})
