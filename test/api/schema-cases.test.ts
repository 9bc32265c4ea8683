import { describe, expect, it } from 'vitest'
import { gatewayBackendSpec } from '../../src/api/gateway-backend.ts'
import { gatewayParametersSpec } from '../../src/api/gateway-parameters.ts'
import { gatewayPolicySpec } from '../../src/api/gateway-policy.ts'
import { check } from '../../src/schema/check.ts'
import { boundCases } from './cases/bounds.ts'
import type { SchemaCase } from './cases/case.ts'
import { groupCases } from './cases/groups.ts'
import { requiredCases } from './cases/required.ts'

const specs = {
  GatewayBackend: gatewayBackendSpec,
  GatewayPolicy: gatewayPolicySpec,
  GatewayParameters: gatewayParametersSpec,
}

const problemsOf = ({ kind, spec }: SchemaCase) => {
  const outcome = check<unknown>(specs[kind], spec, ['spec'])
  return outcome.ok ? [] : outcome.problems
}

// The ids are shown where the API server refuses the same; see test/cluster/crds.test.ts.
describe.each([...groupCases, ...boundCases, requiredCases])(
  'offline validation: $id',
  ({ cases }) => {
    it.each(cases)('$written', (example) => {
      const problems = problemsOf(example)
      if (example.refusedAt === undefined) {
        expect(problems).toEqual([])
      } else {
        expect(problems.map(({ path }) => path)).toEqual([example.refusedAt])
        if (example.message !== undefined) expect(problems[0]?.message).toBe(example.message)
      }
    })
  },
)
