import { describe, expect, it } from 'vitest'
import { changesRequest, effectsOf } from './step-effects.ts'

describe('the effects of policies', () => {
  it('include every change if the policy is not in the table', () => {
    expect(changesRequest('traffic.new')).toBe(true)
    expect(effectsOf('traffic.new', [])).toEqual({ learned: [], headers: 'all', isTotal: true })
  })
})
