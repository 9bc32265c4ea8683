import { describe, expect, it } from 'vitest'
import type { Step } from '../../policies/define.ts'
import { noPolicies } from '../config/policies.ts'
import { plainAddress, UpstreamEndpoint } from '../upstream/endpoint.ts'
import { Attempt, StepProgress } from './request-context.ts'

const step = (): Step => ({ onRequest: () => ({ kind: 'next' }) })

describe('the steps that have passed', () => {
  it('are those before routing, then those after routing', () => {
    const [first, second, third, fourth] = [step(), step(), step(), step()]
    const progress = new StepProgress()
    progress.preRouting = { ...noPolicies, steps: [first, second] }
    progress.preRoutingDone = 2
    progress.postRouting = { ...noPolicies, steps: [third, fourth] }
    progress.postRoutingDone = 1
    expect(progress.passed).toBe(3)
    expect([0, 1, 2].map((index) => progress.at(index))).toEqual([first, second, third])
  })

  it('leave out the steps before routing that have not run', () => {
    const [first, second] = [step(), step()]
    const progress = new StepProgress()
    progress.preRouting = { ...noPolicies, steps: [first, second] }
    progress.preRoutingDone = 1
    expect([progress.passed, progress.at(0)]).toEqual([1, first])
  })
})

describe('an attempt', () => {
  it('is counted by its endpoint until it ends for the first time', () => {
    const address = plainAddress('127.0.0.1', 80)
    const endpoint = new UpstreamEndpoint(address)
    endpoint.begin(undefined)
    endpoint.begin(undefined)
    const attempt = new Attempt(address, endpoint)
    attempt.end()
    attempt.end()
    expect([attempt.isOver, endpoint.load]).toEqual([true, 1])
  })
})
