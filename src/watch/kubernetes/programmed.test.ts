import { describe, expect, it } from 'vitest'
import type { LiveObject } from '../../kube/index.ts'
import { wasProgrammed } from './programmed.ts'

const conditions = (all: Readonly<Record<string, string>>, observedGeneration = 3) =>
  Object.entries(all).map(([type, status]) => ({ type, status, observedGeneration }))

const good = { Accepted: 'True', Conflicted: 'False', Programmed: 'True', ResolvedRefs: 'True' }

const live = (own: unknown, ...listeners: Readonly<Record<string, string>>[]): LiveObject => ({
  kind: 'Gateway',
  path: { group: 'gateway.networking.k8s.io', version: 'v1', plural: 'gateways' },
  namespace: 'default',
  name: 'edge',
  uid: 'u',
  resourceVersion: '9',
  generation: 3,
  isDeleting: false,
  status: {
    addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
    conditions: own,
    listeners: listeners.map((one) => ({ conditions: conditions(one) })),
  },
})

describe('what a status in the cluster says of proxies', () => {
  it.each([
    ['all of it is programmed', live(conditions(good), good), 3],
    [
      'a listener is invalid by itself',
      live(conditions(good), good, { ...good, Programmed: 'False', ResolvedRefs: 'False' }),
      3,
    ],
    [
      'a listener conflicts',
      live(conditions(good), { ...good, Programmed: 'False', Conflicted: 'True' }),
      3,
    ],
    [
      'a proxy has refused a listener',
      live(conditions(good), { ...good, Programmed: 'False' }),
      undefined,
    ],
    ['it waits', live(conditions({ ...good, Programmed: 'False' }), good), undefined],
    ['it speaks of an older generation', live(conditions(good, 2), good), undefined],
    ['there is none', { ...live([]), status: undefined }, undefined],
    ['it is of another kind', { ...live(conditions(good)), kind: 'GatewayPolicy' }, undefined],
  ])('where %s', (_, object, generation) => {
    expect(wasProgrammed(object)?.addresses).toEqual(generation && ['192.0.2.1'])
    expect(wasProgrammed(object)?.generation).toBe(generation)
  })
})
