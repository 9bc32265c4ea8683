import { describe, expect, it } from 'vitest'
import { ResourceIndex } from '../resource-index.ts'
import type { CollectionEntry } from './collection.ts'
import { clusterDifferences, kindsInDoubt } from './differences.ts'
import type { ClusterClaim } from './observe.ts'
import { kubernetesSource } from './source.ts'

const context = { source: kubernetesSource, time: '2026-01-01T00:00:00.000Z', epoch: 0 }

function claim(name: string, revision: number, generation: number): ClusterClaim {
  const version = { spec: 'spec', metadata: 'metadata' }
  const object = { apiVersion: 'v1', kind: 'Gateway', metadata: { name } }
  const content = { state: 'valid', version, object, secrets: [] } as never
  const key = `Gateway/apps/${name}`
  return {
    key,
    name: { kind: 'Gateway', namespace: 'apps', name },
    uid: `uid-${name}`,
    revision: String(revision),
    generation,
    content,
  }
}

/** An index of the log after Gateway `a` was recorded with revision 5 and generation 1. */
function indexOfA(): ResourceIndex {
  const index = new ResourceIndex(kubernetesSource)
  const change = { claims: [claim('a', 5, 1)], gone: [], cause: 'watch' as const }
  index.applyAll(clusterDifferences(index, change, context))
  return index
}

const entry = (name: string, revision: string, uid = `uid-${name}`) =>
  ({ key: `Gateway/apps/${name}`, kind: { kind: 'Gateway' }, uid, revision }) as CollectionEntry

describe('the differences of a cluster to the log', () => {
  it('include a new generation with the content that the log has', () => {
    const change = { claims: [claim('a', 9, 3)], gone: [], cause: 'watch' as const }
    expect(clusterDifferences(indexOfA(), change, context)).toMatchObject([
      { type: 'dev.sluice.resource.applied.v1', data: { name: 'a', generation: 3 } },
    ])
  })

  it('do not include a new revision of the same generation and content', () => {
    const change = { claims: [claim('a', 9, 1)], gone: [], cause: 'watch' as const }
    expect(clusterDifferences(indexOfA(), change, context)).toEqual([])
  })
})

describe('kinds in doubt', () => {
  it.each([
    ['are none if the watch knows the version of the log', [entry('a', '5')], []],
    ['are none if the watch knows a newer version', [entry('a', '6')], []],
    ['include a kind with an object that is newer in the log', [entry('a', '4')], ['Gateway']],
    ['include a kind with an object that only the log has', [], ['Gateway']],
    [
      'include a kind with an object that the log has deleted, or does not have yet',
      [entry('a', '5'), entry('b', '6')],
      ['Gateway'],
    ],
    ['include a kind with a recreated object', [entry('a', '6', 'other')], ['Gateway']],
  ])('%s', (_, entries, kinds) => {
    expect([...kindsInDoubt(indexOfA(), entries, () => true)]).toEqual(kinds)
  })
})
