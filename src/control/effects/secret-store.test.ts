import { describe, expect, it } from 'vitest'
import type { ListenerResource, Resource, VersionedResource } from '../../ground/model/resources.ts'
import { SecretStore } from './secret-store.ts'

const gateway = { namespace: 'ns', name: 'gw' }
const ref = (key: string, digest: string) => ({ namespace: 'ns', name: 'cert', key, digest })
const listener = (section: string, certificate: string, key: string): ListenerResource => ({
  type: 'listener',
  key: `listener/Gateway/ns/gw/${section}`,
  gateway,
  owner: { kind: 'Gateway', ...gateway },
  section,
  port: 443,
  protocol: 'HTTPS',
  hostname: '',
  tls: {
    certificates: [{ certificate: ref('tls.crt', certificate), privateKey: ref('tls.key', key) }],
  },
})
const change = (sequence: number, upserted: readonly Resource[], removed: string[] = []) => ({
  sequence,
  upserted: upserted.map((resource) => ({ version: `${sequence}`, resource })),
  removed,
})
const keys = (upserted: readonly VersionedResource[]) =>
  upserted.map(({ resource }) => resource.key)

function storeWith(...digests: string[]): SecretStore {
  const store = new SecretStore({ onArrival: () => undefined })
  for (const digest of digests) store.keep(digest, Buffer.from(digest))
  return store
}

describe('the secret store', () => {
  it('sends a value once for all resources that refer to it, and removes it with the last one', () => {
    const store = storeWith('d1', 'd2')
    const first = store.join(change(1, [listener('a', 'd1', 'd2')]))
    expect(keys(first.upserted)).toEqual(['secret/d1', 'secret/d2', 'listener/Gateway/ns/gw/a'])
    const second = store.join(change(2, [listener('b', 'd1', 'd2')]))
    expect(keys(second.upserted)).toEqual(['listener/Gateway/ns/gw/b'])
    expect(store.join(change(3, [], ['listener/Gateway/ns/gw/a'])).removed).toEqual([
      'listener/Gateway/ns/gw/a',
    ])
    expect(store.join(change(4, [], ['listener/Gateway/ns/gw/b'])).removed).toEqual([
      'listener/Gateway/ns/gw/b',
      'secret/d1',
      'secret/d2',
    ])
  })

  it('replaces values in the change set that replaces the references', () => {
    const store = storeWith('d1', 'd2', 'd3')
    store.join(change(1, [listener('a', 'd1', 'd2')]))
    const next = store.join(change(2, [listener('a', 'd3', 'd2')]))
    expect(keys(next.upserted)).toEqual(['secret/d3', 'listener/Gateway/ns/gw/a'])
    expect(next.removed).toEqual(['secret/d1'])
  })

  it('publishes values that arrive late, together with the resources that refer to them', async () => {
    let arrivals = 0
    const store = new SecretStore({ onArrival: () => arrivals++ })
    store.join(change(7, [listener('a', 'd1', 'd2')]))
    expect(store.late()).toBeUndefined()
    for (const digest of ['d1', 'd2', 'd9']) store.keep(digest, Buffer.from(digest))
    await Promise.resolve()
    expect(arrivals).toBe(1)
    const late = store.late()
    expect(late?.sequence).toBe(7)
    expect(keys(late?.upserted ?? [])).toEqual([
      'secret/d1',
      'secret/d2',
      'listener/Gateway/ns/gw/a',
    ])
    expect(store.late()).toBeUndefined()
  })

  it('drops values that neither the source nor a resource uses', () => {
    const store = storeWith('d1', 'd2', 'd3', 'd4')
    store.join(change(1, [listener('a', 'd1', 'd2')]))
    store.retain(new Set(['d3']))
    expect(store.size).toBe(3)
    store.join(change(2, [], ['listener/Gateway/ns/gw/a']))
    store.retain(new Set(['d3']))
    expect(store.size).toBe(1)
  })
})

it('reports values that published resources refer to and that are missing, once for each reference', () => {
  const missing: string[][] = []
  const store = new SecretStore({
    onArrival: () => undefined,
    onMissing: (digests) => missing.push([...digests]),
  })
  store.keep('d1', Buffer.from('d1'))
  store.join(change(1, [listener('a', 'd1', 'd2')]))
  store.join(change(2, [listener('b', 'd1', 'd1')]))
  expect(missing).toEqual([['d2']])
  store.keep('d2', Buffer.from('d2'))
  expect(keys(store.late()?.upserted ?? [])).toEqual(['secret/d2', 'listener/Gateway/ns/gw/a'])
})
