import { describe, expect, it } from 'vitest'
import { crds } from '../../src/control/api/crds.ts'
import { listFields, secretPaths } from '../../src/control/api/fields.ts'
import { kinds } from '../../src/control/api/kinds.ts'
import { registeredPolicies } from '../../src/gateway/policies/registry.ts'

const definitions = crds()

/** Every schema object below a schema, itself included. */
function* schemasOf(schema: unknown): Generator<Record<string, unknown>> {
  if (typeof schema !== 'object' || schema === null) return
  const { properties, items, additionalProperties } = schema as Record<string, unknown>
  yield schema as Record<string, unknown>
  for (const child of Object.values((properties ?? {}) as object)) yield* schemasOf(child)
  yield* schemasOf(items)
  yield* schemasOf(additionalProperties)
}

describe.each(definitions.map((crd) => [crd.spec.names.kind, crd] as const))(
  'the generated CRD of %s',
  (kind, crd) => {
    const [version] = crd.spec.versions
    const all = [...schemasOf(version?.schema.openAPIV3Schema)]

    it('has a short name, the category sluice and the expected printer columns', () => {
      expect(crd.spec.names.shortNames).toHaveLength(1)
      expect(crd.spec.names.categories).toEqual(['sluice'])
      expect(crd.spec.names.listKind).toBe(`${kind}List`)
      const columns = version?.additionalPrinterColumns.map(({ name }) => name)
      const expected = {
        GatewayBackend: ['Accepted', 'Reason', 'Age'],
        AgentgatewayModel: ['Accepted', 'Reason', 'Age'],
        GatewayPolicy: ['Accepted', 'Attached', 'Reason', 'Age'],
        GatewayParameters: ['Age'],
        GatewayBudget: [
          'Amount',
          'Unit',
          'Spent',
          'Resets',
          'Accepted',
          'Attached',
          'Reason',
          'Age',
        ],
      }
      expect(columns).toEqual(expected[kind as keyof typeof expected])
      expect(version?.subresources.status).toEqual({})
    })

    it('sets no defaults', () => {
      expect(all.filter((schema) => 'default' in schema)).toEqual([])
    })

    it('uses only keywords that structural schemas allow', () => {
      const forbidden = ['oneOf', '$ref', 'uniqueItems', 'definitions', 'patternProperties']
      for (const schema of all) {
        expect(Object.keys(schema).filter((keyword) => forbidden.includes(keyword))).toEqual([])
        expect(schema.additionalProperties).not.toBe(false)
      }
    })

    it('limits the length of every list whose items have validation rules', () => {
      const lists = all.filter(({ type }) => type === 'array')
      const unbounded = lists.filter(
        (schema) => schema.maxItems === undefined && /"rule"/.test(JSON.stringify(schema.items)),
      )
      expect(unbounded).toEqual([])
    })

    it('describes every field, or in a large definition the fields of every type once', () => {
      const fields = all.flatMap(({ properties }) =>
        Object.entries((properties ?? {}) as Record<string, { description?: string }>),
      )
      const described = new Set(fields.filter(([, one]) => one.description).map(([name]) => name))
      const undescribed = fields
        .filter(([name, one]) => name !== 'metadata' && !one.description)
        .map(([name]) => name)
      expect(kind === 'GatewayBackend' ? [] : undescribed).toEqual([])
      expect(undescribed.filter((name) => !described.has(name))).toEqual([])
    })
  },
)

describe('listFields', () => {
  const fields = listFields()
  const at = (kind: string, path: string) =>
    fields.find((field) => field.kind === kind && field.path === path)

  it('lists every field of the own kinds once', () => {
    const names = fields.map(({ kind, path }) => `${kind} ${path}`)
    expect(new Set(names).size).toBe(names.length)
    expect(new Set(fields.map(({ kind }) => kind))).toEqual(
      new Set(kinds.filter(({ own }) => own).map(({ kind }) => kind)),
    )
  })

  it('returns the support and security of a policy field from the policy registry', () => {
    for (const { section, field, compile, security } of registeredPolicies) {
      expect(at('GatewayPolicy', `spec.${section}.${field}`)).toMatchObject({
        support: compile === undefined ? 'pending' : 'works',
        security,
      })
    }
  })

  it('gives nested fields the support of their parent field', () => {
    const above = at('GatewayBackend', 'spec.ai')
    const below = at('GatewayBackend', 'spec.ai.groups[].providers[].name')
    expect(below).toMatchObject({ support: above?.support, type: 'SectionName', required: true })
    expect(at('GatewayParameters', 'spec.env[].name')?.support).toBe(
      at('GatewayParameters', 'spec.env')?.support,
    )
  })
})

describe('secretPaths', () => {
  const pathsOf = (kind: string) => secretPaths(kind).map(({ path }) => path)

  it('lists the fields that must not be written to a log', () => {
    expect(pathsOf('Secret')).toEqual(['data', 'stringData'])
    expect(pathsOf('GatewayPolicy')).toContain('spec.backend.auth.key')
    expect(pathsOf('GatewayPolicy')).toContain('spec.traffic.basicAuthentication.users')
    expect(pathsOf('GatewayBackend')).toContain('spec.ai.groups[].providers[].policies.auth.key')
  })

  it.each(['HTTPRoute', 'GRPCRoute'])(
    'lists the values of headers that filters of %s set',
    (kind) => {
      for (const filters of ['spec.rules[].filters[]', 'spec.rules[].backendRefs[].filters[]']) {
        for (const message of ['request', 'response']) {
          for (const list of ['set', 'add']) {
            const path = `${filters}.${message}HeaderModifier.${list}[].value`
            expect(secretPaths(kind)).toContainEqual({ path, holds: 'header' })
          }
        }
      }
    },
  )

  it('lists the expressions of headers', () => {
    const transform = 'spec.traffic.transformation.request.set[].value'
    expect(secretPaths('GatewayPolicy')).toEqual(
      expect.arrayContaining(
        [transform, 'spec.traffic.extAuth.http.addRequestHeaders{}'].map((path) => ({
          path,
          holds: 'headerExpression',
        })),
      ),
    )
  })
})
