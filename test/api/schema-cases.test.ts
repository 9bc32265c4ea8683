import { describe, expect, it } from 'vitest'
import { boundCases } from './cases/bounds.ts'
import { byTitle } from './cases/case.ts'
import { credentialCases } from './cases/credentials.ts'
import { groupCases } from './cases/groups.ts'
import { requiredCases } from './cases/required.ts'
import { objectOf, problemsOf } from './offline.ts'

// The tests against an API server cover the coverage ids; see test/cluster/crds.test.ts.
describe.each([...groupCases, ...credentialCases, ...boundCases, requiredCases])(
  'offline validation, $id',
  ({ cases }) => {
    it.each(byTitle(cases))('%s', (_, example) => {
      const problems = problemsOf(objectOf(example))
      if (example.refusedAt === undefined) {
        expect(problems).toEqual([])
      } else {
        expect(problems.map(({ path }) => path)).toEqual([example.refusedAt])
        if (example.message !== undefined) expect(problems[0]?.message).toBe(example.message)
      }
    })
  },
)
