import { describe, expect, it } from 'vitest'
import type { ServiceResource, WorkloadResource } from '../../../ground/model/resources.ts'
import type { UpstreamEndpoint } from './endpoint.ts'
import { portPart, ServiceTable } from './services.ts'

const service: ServiceResource = {
  type: 'service',
  key: 'service/ns/web',
  namespace: 'ns',
  name: 'web',
  ports: [
    { name: 'http', port: 80 },
    { name: 'admin', port: 81 },
  ],
  publishNotReady: false,
}

function slice(
  name: string,
  addresses: Record<string, boolean>,
  ports = { http: 8080 },
): WorkloadResource {
  return {
    type: 'workload',
    key: `workload/ns/${name}`,
    namespace: 'ns',
    name,
    service: 'web',
    ports: Object.entries(ports).map(([name, port]) => ({ name, port })),
    endpoints: Object.entries(addresses).map(([address, ready]) => ({ address, ready })),
  }
}

function tableOf(...parts: (ServiceResource | WorkloadResource)[]): ServiceTable {
  const table = new ServiceTable()
  for (const part of parts) {
    if (part.type === 'service') table.setService(part)
    else table.setSlice(part)
  }
  return table
}

const pools = (endpoints: readonly UpstreamEndpoint[]) =>
  endpoints.map(({ address }) => address.pool)

describe('ServiceTable', () => {
  it('joins EndpointSlices and Service by port name, in any order of arrival', () => {
    const slices = [slice('a', { '10.0.0.1': true }), slice('b', { '10.0.0.2': true })]
    const expected = ['10.0.0.1:8080', '10.0.0.2:8080']
    expect(pools(tableOf(service, ...slices).endpoints('ns/web', 80).all)).toEqual(expected)
    expect(pools(tableOf(...slices, service).endpoints('ns/web', 80).all)).toEqual(expected)
    expect(tableOf(service, ...slices).endpoints('ns/web', 81).all).toEqual([])
    expect(tableOf(service, ...slices).endpoints('ns/web', 82).all).toEqual([])
  })

  it('includes endpoints that are not ready only if the Service publishes them', () => {
    const slices = slice('a', { '10.0.0.1': true, '10.0.0.2': false })
    expect(pools(tableOf(service, slices).endpoints('ns/web', 80).all)).toEqual(['10.0.0.1:8080'])
    const published = { ...service, publishNotReady: true }
    expect(tableOf(published, slices).endpoints('ns/web', 80).all).toHaveLength(2)
  })

  it('merges endpoints with the same address, and keeps their request count across changes', () => {
    const table = tableOf(
      service,
      slice('a', { '10.0.0.1': true }),
      slice('b', { '10.0.0.1': true }),
    )
    const [before] = table.endpoints('ns/web', 80).all
    expect(table.endpoints('ns/web', 80).all).toHaveLength(1)
    before!.outstanding = 3
    table.removeSlice(slice('a', {}))
    expect(table.endpoints('ns/web', 80).all[0]?.outstanding).toBe(3)
  })

  it('has separate endpoints for each proxy, and keeps their request count across changes', () => {
    const table = tableOf(service, slice('a', { '10.0.0.1': true }))
    const by = (proxy?: string) => table.endpoints('ns/web', 80, 'TCP', proxy).all[0]!
    expect(new Set([by(), by('one'), by('two'), by('one')]).size).toBe(3)
    by('one').outstanding = 2
    table.setSlice(slice('b', { '10.0.0.2': true }))
    expect([by(), by('one'), by('two')].map(({ outstanding }) => outstanding)).toEqual([0, 2, 0])
  })

  it('has no endpoints without the Service object, and removes those of a deleted one', () => {
    const table = tableOf(slice('a', { '10.0.0.1': true }))
    expect(table.find('ns/web')).toBe(undefined)
    expect(table.endpoints('ns/web', 80).all).toEqual([])
    table.setService(service)
    expect(table.endpoints('ns/web', 80).all).toHaveLength(1)
    table.removeService(service)
    expect(table.endpoints('ns/web', 80).all).toEqual([])
  })

  it('identifies a port for policies by name and number', () => {
    expect(portPart(service.ports, 80).sections).toEqual(['http', '80'])
    expect(portPart([{ name: '', port: 80 }], 80).sections).toEqual(['80'])
  })
})
