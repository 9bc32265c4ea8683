import { gatewayBackendSpec } from '../../src/api/gateway-backend.ts'
import { gatewayParametersSpec } from '../../src/api/gateway-parameters.ts'
import { gatewayPolicySpec } from '../../src/api/gateway-policy.ts'
import { check, type FieldProblem } from '../../src/schema/check.ts'
import type { SchemaCase } from './cases/case.ts'

const specs = {
  GatewayBackend: gatewayBackendSpec,
  GatewayPolicy: gatewayPolicySpec,
  GatewayParameters: gatewayParametersSpec,
}

/** What offline validation says of an example. */
export function problemsOf({ kind, spec }: SchemaCase): readonly FieldProblem[] {
  const outcome = check<unknown>(specs[kind], spec, ['spec'])
  return outcome.ok ? [] : outcome.problems
}
