import { describe, expect, it } from 'vitest'
import type { RequestContext } from '../request/request-context.ts'
import type { AccessRecord } from '../telemetry/types.ts'
import { Sampler } from './sampler.ts'

interface Request {
  readonly rule?: number
  readonly model?: string
  readonly user?: string
  readonly reason?: string
  readonly atMs?: number
}

const rules = [0, 1].map((ruleIndex) => ({
  resource: { route: { kind: 'HTTPRoute', namespace: 'default', name: 'shop' }, ruleIndex },
}))

function requestOf({ rule = 0, user, atMs = 0 }: Request): RequestContext {
  const learned = { basicAuth: user === undefined ? undefined : { username: user } }
  const exchange = { endedAt: atMs, learned }
  return { exchange, placement: { rule: rules[rule] } } as unknown as RequestContext
}

/** Sends requests, and returns the weights of those that are recorded. */
function weights(sampler: Sampler, count: number, request: Request, bytes = 10): number[] {
  const { model, reason = 'Upstream' } = request
  const access = { reason, record: model && { model }, backend: 'main' } as unknown as AccessRecord
  const isFailure = reason !== 'Upstream'
  const recorded: number[] = []
  for (let n = 0; n < count; n++) {
    const weight = sampler.weightOf(requestOf(request), access, isFailure)
    if (weight === 0) continue
    sampler.charge(isFailure, bytes)
    recorded.push(weight)
  }
  return recorded
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
const newSampler = (workers = 1) => new Sampler(workers, () => 0.5)

describe('a sample of requests', () => {
  it('has few of many requests, and their weights add up to all of them', () => {
    const recorded = weights(newSampler(), 100_000, {})
    expect(recorded.length).toBeGreaterThan(40)
    expect(recorded.length).toBeLessThan(200)
    expect(recorded.slice(0, 8)).toEqual(Array(8).fill(1))
    expect(sum(recorded)).toBeGreaterThan(75_000)
    expect(sum(recorded)).toBeLessThanOrEqual(100_000)
  })

  it('has requests of each rule, model and principal, however rare they are', () => {
    const sampler = newSampler()
    weights(sampler, 100_000, {})
    for (const rare of [
      { rule: 1 },
      { model: 'm' },
      { user: 'ann' },
      { model: 'm', user: 'ann' },
    ]) {
      expect(weights(sampler, 8, rare)).toEqual(Array(8).fill(1))
    }
  })

  it('starts again every ten minutes, so that traffic of a quiet night is recorded', () => {
    const sampler = newSampler()
    const skipped = 100_000 - sum(weights(sampler, 100_000, {}))
    const [first, ...others] = weights(sampler, 8, { atMs: 600_000 })
    expect(first).toBe(skipped + 1)
    expect(others).toEqual(Array(7).fill(1))
  })

  it('has a bound on the number of models and principals of a rule', () => {
    const sampler = newSampler()
    for (let n = 0; n < 1_000; n++) weights(sampler, 1, { user: `user-${n}` }, 0)
    const recorded = weights(sampler, 50_000, { user: 'another' }, 0)
    expect(recorded.length).toBeLessThan(100)
    // In the next ten minutes there is room again.
    expect(weights(sampler, 8, { user: 'late', atMs: 600_000 })).toEqual(Array(8).fill(1))
  })

  it('stops while its bytes are used up, and counts what it has skipped', () => {
    const sampler = newSampler()
    weights(sampler, 1, {}, 256_000)
    expect(weights(sampler, 5, { rule: 1 })).toEqual([])
    expect(weights(sampler, 1, { rule: 1, atMs: 1_000 })).toEqual([6])
  })
})

describe('failures in a sample', () => {
  it('are all recorded, unless there are too many', () => {
    const sampler = newSampler()
    expect(weights(sampler, 10_000, { reason: 'Authorization' }, 100)).toHaveLength(10_000)
    const flood = weights(sampler, 1_000_000, { reason: 'NotFound' }, 100)
    expect(flood.length).toBeLessThan(40_000)
    expect(sum(flood)).toBeGreaterThan(900_000)
  })

  it('of a rare reason are recorded during a flood of others', () => {
    const sampler = newSampler()
    weights(sampler, 1_000_000, { reason: 'NotFound' }, 100)
    expect(weights(sampler, 100, { reason: 'Authorization' }, 100)).toEqual(Array(100).fill(1))
    // The sample of requests that pass has its own bytes.
    expect(weights(sampler, 8, {})).toEqual(Array(8).fill(1))
  })
})
