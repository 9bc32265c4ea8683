import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { kinds, routeKinds } from '../api/kinds.ts'
import { createGraph } from './derivations.ts'

const root = join(import.meta.dirname, '../../..')

describe('every kind of routes', () => {
  it.each(routeKinds.map(({ kind }) => kind))('has a stage besides the claims: %s', (kind) => {
    const graph = createGraph({ checkRegex: () => undefined })
    const ref = { kind, namespace: 'shop', name: 'a' }
    graph.setObject({
      ref,
      uid: 'a',
      resourceVersion: '1',
      generation: 1,
      generationSequence: 1,
      age: { created: 0, order: 0 },
      object: { apiVersion: 'v1', kind, metadata: {}, spec: { rules: [] } },
      refused: undefined,
    })
    graph.settle()
    const stages = graph.derivationsOf(ref).map(({ stage }) => stage)
    // A route may also have a set of models, or delegate to other routes.
    const others = ['route-claims', 'model-set', 'delegation']
    expect(stages.filter((stage) => !others.includes(stage))).toHaveLength(1)
  })

  it('may be read, and its status written, by the controller that the chart installs', () => {
    const rules = readFileSync(join(root, 'charts/sluice/templates/rbac.yaml'), 'utf8')
    const plurals = kinds.filter(({ route }) => route !== undefined).map(({ plural }) => plural)
    const missing = plurals
      .flatMap((plural) => [plural, `${plural}/status`])
      .filter((resource) => !rules.includes(`- ${resource}\n`))
    expect(missing).toEqual([])
  })
})
