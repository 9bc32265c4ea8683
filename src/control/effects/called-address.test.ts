import { expect, test } from 'vitest'
import type { KeySetRequest } from '../../ground/model/key-sets.ts'
import type { Endpoint, Resource } from '../../ground/model/resources.ts'
import { calledAddress } from './called-address.ts'

const service: Resource = {
  type: 'service',
  key: 'service/ns/idp',
  namespace: 'ns',
  name: 'idp',
  ports: [{ name: 'p', port: 80 }],
  publishNotReady: false,
}

const slice = (...endpoints: Endpoint[]): Resource => ({
  type: 'workload',
  key: 'workload/ns/idp-1',
  namespace: 'ns',
  name: 'idp-1',
  service: 'idp',
  ports: [{ name: 'p', port: 8080 }],
  endpoints,
})

const target = { type: 'service', namespace: 'ns', name: 'idp', port: 80 } as const
const request = { target } as unknown as KeySetRequest
const hostOf = (...endpoints: Endpoint[]) =>
  calledAddress(request, [service, slice(...endpoints)], 'cluster.local', () => 0).host

test('a key set is fetched from a terminating endpoint only if no ready one is left', () => {
  const draining = { address: '10.0.0.1', ready: false, serving: true }
  const starting = { address: '10.0.0.2', ready: false }
  expect(hostOf(draining, starting)).toBe('10.0.0.1')
  expect(hostOf(draining, { address: '10.0.0.3', ready: true })).toBe('10.0.0.3')
  expect(() => hostOf(starting)).toThrow('has no ready endpoint')
})
