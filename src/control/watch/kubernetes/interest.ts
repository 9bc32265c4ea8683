/**
 * Decides which Secrets, ConfigMaps, Services and EndpointSlices are relevant: those that a Gateway, a
 * route, a policy or a backend may refer to. A cluster has thousands of others.
 *
 * References are read generously: every `name` in a spec, and for policies and backends every label
 * selector. So no reference is missed when the API gets a new field; at worst an object of the same
 * name elsewhere is recorded needlessly.
 */

import { type LabelSelector, matchesSelector } from '../../../ground/model/label-selector.ts'
import { routeKinds } from '../../api/kinds.ts'

/** Names and selectors by which an object may refer to others. */
export interface MentionedNames {
  readonly names: ReadonlySet<string>
  readonly selectors: readonly LabelSelector[]
}

const kindsWithSelectors = new Set(['GatewayPolicy', 'GatewayBackend'])
const kindsWithReferences = new Set([
  ...kindsWithSelectors,
  'GatewayClass',
  'Gateway',
  'ListenerSet',
  ...routeKinds.map(({ kind }) => kind),
  'BackendTLSPolicy',
  'XAccessPolicy',
  'InferencePool',
  'AgentgatewayModel',
])

/** Returns the names and selectors in an object, or undefined for kinds that refer to nothing. */
export function mentionsOf(kind: string, spec: unknown): MentionedNames | undefined {
  if (!kindsWithReferences.has(kind)) return undefined
  const names = new Set<string>()
  const selectors: LabelSelector[] = []
  collect(spec, names, kindsWithSelectors.has(kind) ? selectors : undefined)
  return { names, selectors }
}

function collect(value: unknown, names: Set<string>, selectors?: LabelSelector[]): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, names, selectors)
    return
  }
  if ('matchLabels' in value || 'matchExpressions' in value) {
    selectors?.push(value as LabelSelector)
  }
  for (const [field, member] of Object.entries(value)) {
    if (field === 'name' && typeof member === 'string') names.add(member)
    else collect(member, names, selectors)
  }
}

export class Interest {
  readonly #mentions = new Map<string, MentionedNames>()
  /** How many objects refer to a name. */
  readonly #counts = new Map<string, number>()
  /** Text of a selector -> the selector, and how many objects have it. */
  readonly #selectors = new Map<string, { readonly selector: LabelSelector; count: number }>()

  /** Replaces the mentions of an object. Returns the names that became mentioned or unmentioned. */
  set(
    key: string,
    mentions: MentionedNames | undefined,
  ): { readonly names: readonly string[]; readonly selectorsChanged: boolean } {
    const before = this.#mentions.get(key)
    if (mentions === undefined) this.#mentions.delete(key)
    else this.#mentions.set(key, mentions)
    const names = [...(mentions?.names ?? [])].filter((name) => this.#count(name, 1) === 1)
    for (const name of before?.names ?? []) if (this.#count(name, -1) === 0) names.push(name)
    let changed = false
    for (const one of mentions?.selectors ?? []) changed = this.#select(one, 1) || changed
    for (const one of before?.selectors ?? []) changed = this.#select(one, -1) || changed
    return { names, selectorsChanged: changed }
  }

  isMentioned(name: string): boolean {
    return this.#counts.has(name)
  }

  isSelected(labels: Readonly<Record<string, string>>): boolean {
    for (const { selector } of this.#selectors.values()) {
      if (matchesSelector(selector, labels)) return true
    }
    return false
  }

  #count(name: string, by: number): number {
    const total = (this.#counts.get(name) ?? 0) + by
    if (total === 0) this.#counts.delete(name)
    else this.#counts.set(name, total)
    return total
  }

  /** Adds or subtracts a use of a selector. Returns whether the set of selectors changed. */
  #select(selector: LabelSelector, by: number): boolean {
    const text = JSON.stringify(selector)
    const entry = this.#selectors.get(text) ?? { selector, count: 0 }
    entry.count += by
    if (entry.count === 0) this.#selectors.delete(text)
    else this.#selectors.set(text, entry)
    return by > 0 ? entry.count === 1 : entry.count === 0
  }
}
