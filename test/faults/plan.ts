/**
 * The changes of a run, generated from a seed: they are the same in every run, so that the final
 * states of a disturbed and an undisturbed run can be compared.
 */
import type { TestObject } from '../support/cluster.ts'

export type Change =
  | { readonly kind: 'apply'; readonly object: TestObject }
  | { readonly kind: 'delete'; readonly of: string; readonly name: string }

export interface Plan {
  readonly changes: readonly Change[]
  /** Answer of a route's host by the end: the revision that it must carry, or a status. */
  readonly answers: ReadonlyMap<string, { readonly status: number; readonly revision?: string }>
  /** Names of the routes that are there by the end. */
  readonly routes: readonly string[]
  readonly policies: readonly string[]
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const namespace = 'default'
export const hostOf = (route: string) => `${route}.example.com`

/** A route whose responses carry a revision; `backend` may not exist. */
export function routeTo(name: string, revision: number, backend = 'shop'): TestObject {
  const set = [{ name: 'x-revision', value: `${revision}` }]
  const filters = [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set } }]
  const backendRefs = [{ group: 'sluice.dev', kind: 'GatewayBackend', name: backend }]
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace },
    spec: {
      parentRefs: [{ name: 'edge' }],
      hostnames: [hostOf(name)],
      rules: [{ filters, backendRefs }],
    },
  }
}

function policyOf(name: string, route: string, revision: number): TestObject {
  const add = [{ name: 'x-policy', value: `${revision}` }]
  return {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayPolicy',
    metadata: { name, namespace },
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: route }],
      traffic: { headerModifiers: { request: { add } } },
    },
  }
}

/** Routes come, change, lose their backend, get it back and go; policies come and change. */
export function planOf(seed: number, count: number): Plan {
  const random = randomFrom(seed)
  const routes = new Map<string, { revision: number; isBroken: boolean }>()
  const policies = new Set<string>()
  const changes: Change[] = []
  const names = Math.max(10, Math.round(count / 5))
  for (let n = 0; n < count; n++) {
    const name = `r-${Math.floor(random() * names)}`
    const what = random()
    const known = routes.get(name)
    // The status of a policy depends on its target, so a route with a policy is kept.
    if (known !== undefined && what < 0.1 && !policies.has(`p-${name}`)) {
      routes.delete(name)
      changes.push({ kind: 'delete', of: 'HTTPRoute', name })
    } else if (known !== undefined && what < 0.2) {
      const policy = `p-${name}`
      policies.add(policy)
      changes.push({ kind: 'apply', object: policyOf(policy, name, n) })
    } else {
      const isBroken = known?.isBroken !== true && what > 0.9
      routes.set(name, { revision: n, isBroken })
      const object = routeTo(name, n, isBroken ? 'absent' : 'shop')
      changes.push({ kind: 'apply', object })
    }
  }
  const answers = new Map<string, { status: number; revision?: string }>()
  for (let n = 0; n < names; n++) {
    const route = routes.get(`r-${n}`)
    const answer =
      route === undefined
        ? { status: 404 }
        : route.isBroken
          ? { status: 500 }
          : { status: 200, revision: `${route.revision}` }
    answers.set(hostOf(`r-${n}`), answer)
  }
  return { changes, answers, routes: [...routes.keys()], policies: [...policies] }
}
