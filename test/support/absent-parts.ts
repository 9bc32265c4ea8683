/**
 * Vitest global set-up: when the run ends, says which real parts were absent and how many tests
 * were skipped for it, so that a green run never hides a skipped test.
 */
import type { TestProject } from 'vitest/node'

export default function setup(project: TestProject): () => void {
  return () => {
    const skipped = new Map<string, number>()
    for (const module of project.vitest.state.getTestModules()) {
      // Tests inherit the mark of the suites around them.
      for (const test of module.children.allTests()) {
        const reason = test.meta().absentPart
        if (reason !== undefined) skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
      }
    }
    for (const [reason, count] of skipped) {
      console.log(`${count} ${count === 1 ? 'test' : 'tests'} skipped: ${reason}`)
    }
    if (skipped.size > 0) console.log('test/assets/setup makes what is absent')
  }
}
