import { expect, it } from 'vitest'
import type { RolloutPlan } from '../../../../events/index.ts'
import { isIncomplete, type RolloutTargets } from './targets.ts'

it('takes no chosen proxy for gone because it is of another Gateway', () => {
  const plans: RolloutPlan[] = ['default/a', 'default/b'].map((gateway) => ({
    gateway,
    steps: [2],
    holdSeconds: 60,
    analysis: [],
  }))
  const targetsOf = (...all: readonly string[]): RolloutTargets => {
    const names = (gateway: string) => all.filter((name) => gateway.endsWith(name.slice(0, 1)))
    const of = (gateway: string) =>
      names(gateway).map((name) => ({
        name,
        proxy: { proxy: name, state: 'ready', rejections: {} } as never,
      }))
    return { of, names }
  }
  const chosen = new Set(['a1', 'b1', 'b2'])
  // The second proxy of the Gateway has come since.
  expect(isIncomplete(plans, 1, targetsOf('a1', 'a2', 'b1', 'b2', 'b3'), chosen)).toBe(false)
  expect(isIncomplete(plans, 1, targetsOf('a1', 'a2', 'b1', 'b3'), chosen)).toBe(true)
})
