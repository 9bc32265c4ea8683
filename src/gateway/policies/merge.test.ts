import { describe, expect, it } from 'vitest'
import { portSection } from '../../ground/model/port-section.ts'
import type { PolicyPhase, PolicyResource, PolicyTarget } from '../../ground/model/resources.ts'
import {
  backendLevels,
  gatewayLevels,
  type Levels,
  listenerLevels,
  mergePolicies,
  ruleLevels,
  targetKey,
} from './merge.ts'
import { policyRegistry } from './registry.ts'

const gateway = { kind: 'Gateway', namespace: 'infra', name: 'edge' }
const listenerSet = { kind: 'ListenerSet', namespace: 'shop', name: 'extra' }
const route = { kind: 'HTTPRoute', namespace: 'shop', name: 'cart' }
const service = { kind: 'Service', namespace: 'shop', name: 'cart' }
const onGateway = { gateway, owner: gateway, section: 'web', port: 80 }
const onEntry = { gateway, owner: listenerSet, section: 'web', port: 80 }
const rulePlace = { route, ruleIndex: 0, ruleName: 'add' }

interface Written {
  readonly target: PolicyTarget
  readonly field: string
  readonly value: string
  readonly section?: PolicyResource['section']
  readonly phase?: PolicyPhase
  readonly name?: string
  readonly created?: number
  readonly order?: number
  readonly unenforceable?: string
}

function policy(written: Written): PolicyResource {
  const { target, field, value, section = 'traffic', phase = 'PostRouting' } = written
  const name = written.name ?? `policy-${value}`
  return {
    type: 'policy',
    key: `policy/${section}/ns/${name}/${field}/${targetKey(target)}`,
    policy: { namespace: 'ns', name },
    section,
    field,
    phase,
    target,
    created: written.created ?? 0,
    order: written.order ?? 0,
    configVersion: 1,
    config: value,
    ...(written.unenforceable !== undefined && { unenforceable: written.unenforceable }),
  }
}

/** Lists the policy fields that apply at a place, as `field: value`. */
function merge(
  levels: Levels,
  written: readonly Written[],
  phase: PolicyPhase = 'PostRouting',
): Record<string, string> {
  const policies = written.map(policy)
  const merged = mergePolicies(policyRegistry, phase, levels, (key) =>
    policies.filter(({ target }) => targetKey(target) === key),
  )
  return Object.fromEntries(
    merged.map(({ definition, policies }) => [
      definition.field,
      policies.map(({ config }) => config).join(' then '),
    ]),
  )
}

const levels = ruleLevels(onGateway, rulePlace)
const rule = { ...route, section: 'add' }
const listener = { ...gateway, section: 'web' }

describe('merging traffic policies', () => {
  it('takes a whole field from the more specific source and keeps other fields', () => {
    const written = [
      { target: gateway, field: 'csrf', value: 'csrf of the gateway' },
      { target: gateway, field: 'cors', value: 'A' },
      { target: route, field: 'cors', value: 'B' },
    ]
    expect(merge(levels, written)).toEqual({ csrf: 'csrf of the gateway', cors: 'B' })
  })

  it('replaces rateLimit, headerModifiers and transformation as a whole', () => {
    const written = ['rateLimit', 'headerModifiers', 'transformation'].flatMap((field) => [
      { target: gateway, field, value: 'first half' },
      { target: rule, field, value: 'second half' },
    ])
    expect(merge(levels, written)).toEqual({
      rateLimit: 'second half',
      transformation: 'second half',
      headerModifiers: 'second half',
    })
  })

  it.each([
    ['Gateway', 'port', gateway, { ...gateway, section: portSection(80) }],
    ['port', 'listener', { ...gateway, section: portSection(80) }, listener],
    ['listener', 'route', listener, route],
    ['route', 'route rule', route, rule],
  ])('gives a policy on the %s lower precedence than one on the %s', (_low, _high, low, high) => {
    const written = [
      { target: high, field: 'csrf', value: 'high', created: 2 },
      { target: low, field: 'csrf', value: 'low', created: 1 },
    ]
    expect(merge(levels, written)).toEqual({ csrf: 'high' })
  })

  it.each([
    ['Gateway', 'ListenerSet', gateway, listenerSet],
    ['ListenerSet', 'entry', listenerSet, { ...listenerSet, section: 'web' }],
  ])(
    'gives a policy on the %s lower precedence than one on the %s for ListenerSets',
    (_low, _high, low, high) => {
      const written = [
        { target: high, field: 'csrf', value: 'high', created: 2 },
        { target: low, field: 'csrf', value: 'low', created: 1 },
      ]
      expect(merge(ruleLevels(onEntry, rulePlace), written)).toEqual({ csrf: 'high' })
    },
  )

  it('does not apply a policy on a listener of the Gateway to an entry of the same name', () => {
    const written = [{ target: listener, field: 'csrf', value: 'listener' }]
    expect(merge(listenerLevels(onEntry), written)).toEqual({})
  })

  it('applies the older of two policies on one level', () => {
    const written = [
      { target: route, field: 'cors', value: 'younger', name: 'a', created: 2 },
      { target: route, field: 'cors', value: 'older', name: 'b', created: 1 },
    ]
    expect(merge(levels, written)).toEqual({ cors: 'older' })
  })

  it('applies the policy seen first, then the smaller name, if the ages are equal', () => {
    const seen = [
      { target: route, field: 'cors', value: 'second', name: 'a', order: 9 },
      { target: route, field: 'cors', value: 'first', name: 'b', order: 3 },
    ]
    expect(merge(levels, seen)).toEqual({ cors: 'first' })
    const alike = [
      { target: route, field: 'cors', value: 'larger name', name: 'b' },
      { target: route, field: 'cors', value: 'smaller name', name: 'a' },
    ]
    expect(merge(levels, alike)).toEqual({ cors: 'smaller name' })
  })

  it('merges two policies on one Gateway field by field, and applies one value per field', () => {
    const onFrontend = { target: gateway, section: 'frontend' as const }
    const written = [
      { ...onFrontend, field: 'accessLog', value: 'log', name: 'a' },
      { ...onFrontend, field: 'tracing', value: 'trace', name: 'b' },
      { ...onFrontend, field: 'accessLog', value: 'other log', name: 'b' },
    ]
    expect(merge(gatewayLevels(gateway), written)).toEqual({ accessLog: 'log', tracing: 'trace' })
  })

  it('merges each phase separately', () => {
    const written = [
      { target: gateway, field: 'jwtAuthentication', value: 'J1', phase: 'PreRouting' as const },
      { target: route, field: 'jwtAuthentication', value: 'J2' },
    ]
    const before = listenerLevels(onGateway)
    expect(merge(before, written, 'PreRouting')).toEqual({ jwtAuthentication: 'J1' })
    expect(merge(levels, written)).toEqual({ jwtAuthentication: 'J2' })
  })

  it('omits fields that cannot run before routing from the phase PreRouting', () => {
    const phase = 'PreRouting' as const
    const written = [{ target: gateway, field: 'csrf', value: 'early', phase }]
    expect(merge(listenerLevels(onGateway), written, phase)).toEqual({})
  })

  it('ignores timeouts that target anything but an HTTPRoute or its rules', () => {
    const written = [
      { target: gateway, field: 'timeouts', value: '10s' },
      { target: listener, field: 'timeouts', value: '9s' },
    ]
    expect(merge(levels, written)).toEqual({})
    const onRoute = { target: route, field: 'timeouts', value: '8s' }
    expect(merge(levels, [...written, onRoute])).toEqual({ timeouts: '8s' })
  })

  it('lets a valid policy override one that cannot be enforced', () => {
    const broken = { target: gateway, field: 'csrf', value: 'broken', unenforceable: 'why' }
    expect(merge(levels, [broken])).toEqual({ csrf: 'broken' })
    expect(merge(levels, [broken, { target: route, field: 'csrf', value: 'fine' }])).toEqual({
      csrf: 'fine',
    })
  })

  it('accumulates an appending field over all levels, least specific first', () => {
    const written = [
      { target: rule, field: 'authorization', value: 'deny on the rule' },
      { target: gateway, field: 'authorization', value: 'younger on the gateway', created: 2 },
      { target: gateway, field: 'authorization', value: 'older on the gateway', created: 1 },
    ]
    expect(merge(levels, written)).toEqual({
      authorization: 'older on the gateway then younger on the gateway then deny on the rule',
    })
  })
})

describe('merging backend policies', () => {
  const port = { ...service, section: '80' }
  const place = { backend: service, sections: ['http', '80'] }
  const chain: [string, PolicyTarget][] = [
    ['Gateway', gateway],
    ['listener', listener],
    ['route', route],
    ['route rule', rule],
    ['Service', service],
    ['port of the Service', port],
    ['inline on the backend', { ...service, inline: true }],
    ['inline on the sub-backend', { ...port, inline: true }],
  ]
  const steps = chain.slice(1).map(([name, target], at) => {
    const [belowName, below] = chain[at]!
    return [belowName, name, below, target] as const
  })

  it.each(steps)(
    'gives a policy on the %s lower precedence than one on the %s',
    (_l, _h, low, high) => {
      const written = [
        { target: high, section: 'backend' as const, field: 'tls', value: 'high', created: 2 },
        { target: low, section: 'backend' as const, field: 'tls', value: 'low', created: 1 },
      ]
      expect(merge(backendLevels(levels, place), written)).toEqual({ tls: 'high' })
    },
  )

  it('finds a policy by port name and by port number', () => {
    const named = { ...service, section: 'http' }
    const written = [{ target: named, section: 'backend' as const, field: 'tls', value: 'T' }]
    expect(merge(backendLevels(levels, place), written)).toEqual({ tls: 'T' })
  })

  it('merges tcp of the Gateway with tls of the backend', () => {
    const section = 'backend' as const
    const written = [
      { target: gateway, section, field: 'tcp', value: 'tcp' },
      { target: gateway, section, field: 'tls', value: 'T1' },
      { target: service, section, field: 'tls', value: 'T2' },
    ]
    expect(merge(backendLevels(levels, place), written)).toEqual({ tcp: 'tcp', tls: 'T2' })
  })
})

describe('the policy registry', () => {
  it('orders CORS first, authorization after all authentication, and budgets behind direct responses', () => {
    const order = policyRegistry
      .filter(({ section }) => section === 'traffic')
      .map(({ field }) => field)
    expect(order).toEqual([
      'cors',
      'jwtAuthentication',
      'basicAuthentication',
      'apiKeyAuthentication',
      'oidc',
      'extAuth',
      'identity',
      'authorization',
      'access',
      'consentPages',
      'retry',
      'rateLimit',
      'extProc',
      'transformation',
      'csrf',
      'jsonGuard',
      'delay',
      'buffer',
      'headerModifiers',
      'hostRewrite',
      'timeouts',
      'directResponse',
      'budgets',
    ])
  })

  it('allows only the listed policies before routing', () => {
    const early = policyRegistry.filter(({ preRouting }) => preRouting).map(({ field }) => field)
    expect(early.toSorted()).toEqual([
      'apiKeyAuthentication',
      'authorization',
      'basicAuthentication',
      'cors',
      'extAuth',
      'extProc',
      'jwtAuthentication',
      'oidc',
      'transformation',
    ])
  })
})
