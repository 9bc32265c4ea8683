import { describe, expect, it } from 'vitest'
import { changesRequest, effectsOf } from './step-effects.ts'

describe('the effects of policies', () => {
  it('are everything for a policy that nobody has described', () => {
    expect(changesRequest('traffic.new')).toBe(true)
    expect(effectsOf('traffic.new', [])).toEqual({ learned: [], headers: 'all', isTotal: true })
  })
})
