/** API keys of a route, of which one is removed and one expires while requests are under way. */
import { createHash } from 'node:crypto'
import type { PolicyResource } from '../../src/ground/model/resources.ts'
import { policy } from '../proxy/plane-resources.ts'
import type { Random } from '../virtual-time/random.ts'

export type KeyKind = 'lasting' | 'removed' | 'expiring' | 'unknown' | 'none'

const kinds: readonly KeyKind[] = [
  ...Array.from({ length: 5 }, () => 'lasting' as const),
  'removed',
  'removed',
  'removed',
  'expiring',
  'expiring',
  'expiring',
  'unknown',
  'none',
]

export const randomKind = (random: Random): KeyKind => random.pick(kinds)

/** When the keys of a route cease to be valid, in milliseconds of the world's clock. */
export interface RouteKeys {
  /** When the workers learn of it. */
  removedAt: number
  readonly expiresAt: number
}

const longTime = 3_000

export const randomKeys = (random: Random, chance: number): RouteKeys | undefined =>
  random.chance(chance)
    ? {
        removedAt: 1 + Math.floor(random.between(0, longTime)),
        expiresAt: 1 + Math.floor(random.between(0, longTime)),
      }
    : undefined

const keyOf = (route: string, kind: KeyKind): string => `key-${route}-${kind}`

/** The field with which a client sends a key; undefined if it sends none. */
export const keyField = (route: string, kind: KeyKind): readonly [string, string] | undefined =>
  kind === 'none' ? undefined : ['Authorization', `Bearer ${keyOf(route, kind)}`]

/** The policy of a route, which has hashes of its keys. `epochMs`: the wall clock when the world begins. */
export function keyPolicy(
  route: string,
  { expiresAt }: RouteKeys,
  epochMs: number,
  hasRemoved: boolean,
): PolicyResource {
  const entry = (kind: KeyKind, more: object = {}) => {
    const keyHash = `sha256:${createHash('sha256').update(keyOf(route, kind)).digest('hex')}`
    return { name: kind, text: JSON.stringify({ keyHash, ...more }) }
  }
  const expiring = entry('expiring', { expiresAt: new Date(epochMs + expiresAt).toISOString() })
  const hashed = [entry('lasting'), expiring, ...(hasRemoved ? [entry('removed')] : [])]
  const target = { kind: 'HTTPRoute', namespace: 'shop', name: route }
  const config = JSON.stringify({ mode: 'Strict', entries: [], names: [], hashed })
  const spec = { configMapSelector: { matchLabels: { keys: route } } }
  return policy(target, 'apiKeyAuthentication', spec, { name: `keys-${route}`, config })
}

/**
 * Whether a key is valid for a request that was begun at one time and decided before another: `undefined` if it
 * ceases to be valid between them.
 */
export function isValid(
  kind: KeyKind,
  { removedAt, expiresAt }: RouteKeys,
  begunAt: number,
  decidedBefore: number,
): boolean | undefined {
  if (kind === 'lasting') return true
  if (kind === 'unknown' || kind === 'none') return false
  const end = kind === 'removed' ? removedAt : expiresAt
  if (decidedBefore < end) return true
  return begunAt >= end ? false : undefined
}
