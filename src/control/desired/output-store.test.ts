import { describe, expect, it } from 'vitest'
import type { ServiceResource } from '../../ground/model/resources.ts'
import { OutputStore } from './output-store.ts'

const service = (name: string, port: number): ServiceResource => ({
  type: 'service',
  key: `service/ns/${name}`,
  namespace: 'ns',
  name,
  ports: [{ name: '', port }],
  publishNotReady: false,
})

const owners = { x: {}, y: {}, old: {}, new: {} }

describe('published resources', () => {
  it('have a digest that depends only on the current resources', () => {
    const direct = new OutputStore()
    direct.replaceResources(owners.x, [], [service('a', 1), service('b', 2)])
    const detour = new OutputStore()
    detour.replaceResources(owners.x, [], [service('b', 9), service('c', 3)])
    detour.replaceResources(owners.x, [service('b', 9), service('c', 3)], [service('b', 2)])
    detour.replaceResources(owners.y, [], [service('a', 1)])
    expect(detour.digest).toBe(direct.digest)
    expect(detour.digest).not.toBe(new OutputStore().digest)
  })

  it('are reported as changed once, and only if their content differs', () => {
    const store = new OutputStore()
    store.replaceResources(owners.x, [], [service('a', 1)])
    expect([...store.takeChanges().keys()]).toEqual(['service/ns/a'])
    store.replaceResources(owners.x, [service('a', 1)], [service('a', 1)])
    expect(store.takeChanges().size).toBe(0)
  })

  it('remain if another owner has taken them over, in either order of derivation', () => {
    const store = new OutputStore()
    store.replaceResources(owners.old, [], [service('a', 1)])
    store.replaceResources(owners.new, [], [service('a', 2)])
    store.replaceResources(owners.old, [service('a', 1)], [])
    expect(store.resources().map(({ resource }) => resource)).toEqual([service('a', 2)])
    store.replaceResources(owners.new, [service('a', 2)], [])
    expect(store.resources()).toEqual([])
  })
})
