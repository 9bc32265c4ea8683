import { type FieldProblem, validateObject } from '../../src/control/api/validate.ts'
import type { SchemaCase } from './cases/case.ts'

/** The object of a case, as a user would write it. */
export function objectOf({ kind, spec }: Pick<SchemaCase, 'kind' | 'spec'>, name = 'example') {
  return { apiVersion: 'sluice.dev/v1alpha1', kind, metadata: { name }, spec }
}

/** What offline validation says of an object. */
export function problemsOf(object: unknown): readonly FieldProblem[] {
  const outcome = validateObject(object)
  return outcome.ok ? [] : outcome.problems
}
