import { describe, expect, it } from 'vitest'
import { validateObject } from '../../src/control/api/validate.ts'
import { budgetCases } from './cases/budgets.ts'
import { byTitle } from './cases/case.ts'
import { refusalCases } from './cases/refusals.ts'

describe.each([...refusalCases, budgetCases])('offline validation, $id', ({ cases }) => {
  it.each(byTitle(cases))('%s', (_, example) => {
    const { kind, spec, refusedAt, message } = example
    const object = { apiVersion: 'sluice.dev/v1alpha1', kind, metadata: { name: 'a' }, spec }
    const outcome = validateObject(object)
    const problems = outcome.ok ? [] : outcome.problems
    expect(problems.map(({ path }) => path)).toEqual(refusedAt === undefined ? [] : [refusedAt])
    if (message !== undefined) expect(problems[0]?.message).toBe(message)
  })
})
