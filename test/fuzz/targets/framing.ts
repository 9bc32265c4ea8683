import { type FramingCase, framingCases } from '../../protocol/framing-cases.ts'
import { startFramingScene } from '../../protocol/framing-scene.ts'
import fc from '../../support/fast-check.ts'
import { defineTarget } from '../support/target.ts'

export default defineTarget({
  about:
    'policies change statuses and bodies, and strict readers at both ends agree on every message',
  generate: (random) => {
    const [one] = fc.sample(framingCases, { numRuns: 1, seed: random.integer() | 0 })
    return JSON.stringify(one)
  },
  async start() {
    const scene = await startFramingScene()
    return {
      check: (input) => scene.check(JSON.parse(input.toString()) as FramingCase),
      close: () => scene.close(),
    }
  },
})
