import { describe, expect, it } from 'vitest'
import { kinds } from '../../src/control/api/kinds.ts'
import { validateObject } from '../../src/control/api/validate.ts'
import { caseTitle } from './cases/case.ts'
import {
  gatewayGroup as group,
  gatewayObject as objectOf,
  gatewayApiTable as table,
} from './gateway-api-table.ts'

describe.each(Object.entries(table))('offline validation of %s', (kind, rows) => {
  it.each(rows.map((row) => [caseTitle(row), row] as const))('%s', (_, row) => {
    const outcome = validateObject(objectOf(kind, row.spec))
    const problems = outcome.ok ? [] : outcome.problems
    const expected = row.refusedAt === undefined ? [] : [row.refusedAt, ...(row.also ?? [])]
    expect(problems.map(({ path }) => path)).toEqual(expected)
    if (row.message !== undefined) expect(problems[0]?.message).toContain(row.message)
  })
})

describe('offline validation of Gateway API objects', () => {
  it('has cases for every kind of the Gateway API', () => {
    const known = kinds.filter((row) => row.group === group).map(({ kind }) => kind)
    expect(Object.keys(table).sort()).toEqual(known.sort())
  })

  it.each([
    ['HTTPRoute', 'v1beta1', {}],
    [
      'Gateway',
      'v1beta1',
      { gatewayClassName: 'c', listeners: [{ name: 'a', port: 1, protocol: 'HTTP' }] },
    ],
    ['GatewayClass', 'v1beta1', { controllerName: 'a/b' }],
    ['ReferenceGrant', 'v1beta1', table.ReferenceGrant?.[0]?.spec ?? {}],
    ['BackendTLSPolicy', 'v1alpha3', table.BackendTLSPolicy?.[0]?.spec ?? {}],
    ['TLSRoute', 'v1alpha3', table.TLSRoute?.[0]?.spec ?? {}],
    ['TLSRoute', 'v1alpha2', { rules: [{ backendRefs: [{ name: 'a', port: 1 }] }] }],
    ['TCPRoute', 'v1alpha2', table.TCPRoute?.[1]?.spec ?? {}],
    ['UDPRoute', 'v1alpha2', table.UDPRoute?.[0]?.spec ?? {}],
  ])('reads %s %s and converts it to v1', (kind, version, spec) => {
    const outcome = validateObject(objectOf(kind, spec, version))
    expect(outcome).toMatchObject({ ok: true, value: { apiVersion: `${group}/v1`, kind } })
  })

  it('fills in the defaults of the upstream definitions', () => {
    const outcome = validateObject(
      objectOf('HTTPRoute', {
        parentRefs: [{ name: 'gw' }],
        rules: [{ backendRefs: [{ name: 's', port: 80 }] }],
      }),
    )
    expect(outcome).toMatchObject({
      ok: true,
      value: {
        spec: {
          parentRefs: [{ group, kind: 'Gateway', name: 'gw' }],
          rules: [
            {
              matches: [{ path: { type: 'PathPrefix', value: '/' } }],
              backendRefs: [{ group: '', kind: 'Service', weight: 1 }],
            },
          ],
        },
      },
    })
  })

  it('limits a route to 128 matches over all rules', () => {
    const rule = (count: number) => ({
      matches: Array.from({ length: count }, (_, index) => ({ path: { value: `/${index}` } })),
    })
    expect(validateObject(objectOf('HTTPRoute', { rules: [rule(64), rule(64)] })).ok).toBe(true)
    expect(validateObject(objectOf('HTTPRoute', { rules: [rule(64), rule(64), rule(1)] }))).toEqual(
      {
        ok: false,
        problems: [
          {
            path: 'spec.rules',
            message: 'the total number of matches across all rules in a route must be at most 128',
          },
        ],
      },
    )
  })
})
