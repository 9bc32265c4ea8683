import { ControlPlane, realObjects } from '../support/control-plane.ts'
import { hostile } from '../support/hostile.ts'
import { defineTarget } from '../support/target.ts'

/** Parts of real objects, to be put where other parts belong. */
const parts = realObjects.flatMap(({ spec }) =>
  typeof spec === 'object' && spec !== null ? Object.values(spec) : [],
)

export default defineTarget({
  about: 'no object of any kind stops the control plane, whatever stands in its fields',
  generate(random) {
    const count = 1 + random.below(4)
    const objects = Array.from({ length: count }, () => random.pick(realObjects))
    // The first ones stay valid, so that the others meet what they refer to.
    const intact = random.below(count)
    const [rest, changed] = [objects.slice(0, intact), objects.slice(intact)]
    return JSON.stringify([...rest, ...hostile(changed, random, parts)])
  },
  start() {
    const plane = new ControlPlane()
    return {
      check(input) {
        let objects: unknown
        try {
          objects = JSON.parse(input.toString())
        } catch {
          return
        }
        if (Array.isArray(objects)) plane.checkObjects(objects)
      },
    }
  },
})
