import { describe, expect, it } from 'vitest'
import type { LiveObject } from '../../kube/index.ts'
import { wasProgrammed } from './observe.ts'

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

describe('wasProgrammed', () => {
  it.each([
    ['returns the addresses if everything is Programmed', live(conditions(good), good), 3],
    [
      'returns the addresses if a listener is not Programmed because it is invalid',
      live(conditions(good), good, { ...good, Programmed: 'False', ResolvedRefs: 'False' }),
      3,
    ],
    [
      'returns the addresses if a listener is not Programmed because it conflicts',
      live(conditions(good), { ...good, Programmed: 'False', Conflicted: 'True' }),
      3,
    ],
    [
      'returns nothing if a proxy has rejected a listener',
      live(conditions(good), { ...good, Programmed: 'False' }),
      undefined,
    ],
    [
      'returns nothing if the Gateway is not Programmed',
      live(conditions({ ...good, Programmed: 'False' }), good),
      undefined,
    ],
    [
      'returns nothing if the status is of an older generation',
      live(conditions(good, 2), good),
      undefined,
    ],
    ['returns nothing without a status', { ...live([]), status: undefined }, undefined],
    [
      'returns nothing for another kind',
      { ...live(conditions(good)), kind: 'GatewayPolicy' },
      undefined,
    ],
  ])('%s', (_, object, generation) => {
    expect(wasProgrammed(object)?.addresses).toEqual(generation && ['192.0.2.1'])
    expect(wasProgrammed(object)?.generation).toBe(generation)
  })
})
