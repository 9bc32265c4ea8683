/** The health checks of docs/operations/gitops.md for Flux. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { activationOf, compileCel } from '../src/engines/cel/index.ts'

interface HealthCheck {
  readonly kind: string
  readonly inProgress: string
  readonly failed: string
  readonly current: string
}

const page = readFileSync(join(import.meta.dirname, '../docs/operations/gitops.md'), 'utf8')
const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)
const checks: HealthCheck[] = blocks
  .flatMap((text) => parseAllDocuments(text))
  .map((document) => document.toJS())
  .flatMap(({ spec }) => spec?.healthCheckExprs ?? [])

const condition = (type: string, status = 'True', observedGeneration = 2) => ({
  type,
  status,
  observedGeneration,
})

/** The first of the three states whose expression is true, in the order in which Flux checks them. */
function healthOf(check: HealthCheck, conditions: object[]): string | undefined {
  const entries = [{ conditions }]
  const status = check.kind === 'HTTPRoute' ? { parents: entries } : { ancestors: entries }
  return (['inProgress', 'failed', 'current'] as const).find((state) => {
    const compiled = compileCel(check[state])
    if (!compiled.ok) throw new Error(JSON.stringify(compiled))
    return (
      compiled.value.evaluate(activationOf({ status, metadata: { generation: 2 } } as never)) ===
      true
    )
  })
}

it('distinguishes objects that are held, in a rollout or rolled back from those that are in force or refused', () => {
  expect(checks.map(({ kind }) => kind)).toEqual(['HTTPRoute', 'GatewayPolicy'])
  for (const check of checks) {
    expect(healthOf(check, [condition('Accepted')])).toBe('current')
    expect(healthOf(check, [condition('Accepted'), condition('Held')])).toBe('inProgress')
    expect(healthOf(check, [condition('Accepted'), condition('Pinned')])).toBe('inProgress')
    expect(healthOf(check, [condition('Accepted', 'False')])).toBe('failed')
    // In a rollout, the other conditions are those of the generation in force.
    for (const [type, health] of [
      ['Progressing', 'inProgress'],
      ['Paused', 'inProgress'],
      ['RolledBack', 'failed'],
    ] as const) {
      expect(healthOf(check, [condition('Accepted', 'True', 1), condition(type, 'True', 1)])).toBe(
        health,
      )
    }
    // Conditions of an earlier generation say nothing about this one, except that it is held.
    expect(healthOf(check, [condition('Accepted', 'True', 1)])).toBe(undefined)
    expect(healthOf(check, [condition('Accepted', 'False', 1)])).toBe(undefined)
    expect(healthOf(check, [condition('Held', 'True', 1)])).toBe('inProgress')
    expect(healthOf(check, [])).toBe(undefined)
  }
})
