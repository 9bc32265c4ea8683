/**
 * Vitest global set-up: when the run ends, says which real parts were absent and how many tests
 * were skipped for it, so that a green run never hides what it did not show.
 */
import type { TestProject } from 'vitest/node'

export default function setup(project: TestProject): () => void {
  return () => {
    const skipped = new Map<string, number>()
    for (const module of project.vitest.state.getTestModules()) {
      for (const suite of module.children.allSuites()) {
        const reason = suite.meta().absentPart
        if (reason === undefined) continue
        const tests = [...suite.children.allTests()].length
        skipped.set(reason, (skipped.get(reason) ?? 0) + tests)
      }
    }
    for (const [reason, count] of skipped) {
      console.log(`${count} ${count === 1 ? 'test' : 'tests'} skipped: ${reason}`)
    }
    if (skipped.size > 0) console.log('test/assets/setup makes what is absent')
  }
}
