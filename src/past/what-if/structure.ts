/** What a change takes away: listeners, and policies that protect what remains. */
import type { UnmetCondition } from '../../../events/index.ts'
import { targetKey } from '../../gateway/policies/merge.ts'
import { policyName, policyRegistry } from '../../gateway/policies/registry.ts'
import { gatewayRef, objectKey, objectText } from '../../ground/model/names.ts'
import type { ListenerResource, PolicyResource } from '../../ground/model/resources.ts'
import { type Protection, protectionsOf, weakened } from './protections.ts'
import { ResourceTable } from './resources.ts'
import type { ComparedStates } from './states.ts'
import { TakenOver } from './taken-over.ts'

/** The names of policies whose removal lets requests pass that were checked or limited before. */
export const protective: ReadonlySet<string> = new Set(
  policyRegistry
    .filter(({ security }) => security)
    .map(({ section, field }) => policyName(section, field)),
)

/** Maximum number of objects that a message names. */
const maxNamed = 5

/** The conditions about listeners and policies that a change does not meet, for each protected Gateway. */
export function structureProblems(
  states: ComparedStates,
  protections: ReadonlyMap<string, Protection>,
): UnmetCondition[] {
  const [before, after] = [new ResourceTable(states.present), new ResourceTable(states.fold)]
  const later = protectionsOf(states.fold)
  const removed = removedPolicies(before, after, states)
  const unmet: UnmetCondition[] = []
  for (const [gateway, protection] of protections) {
    const add = (condition: string, what: string, names: readonly string[]) => {
      if (names.length === 0) return
      const more = names.length > maxNamed ? `, and ${names.length - maxNamed} more` : ''
      const message = `${what}: ${names.slice(0, maxNamed).join(', ')}${more}`
      unmet.push({ condition, gateway, message })
    }
    if (protection.refusesLostListeners) {
      add('lostListeners', `listeners of Gateway ${gateway} are lost`, lost(gateway, before, after))
    }
    if (!protection.refusesRemovedProtections) continue
    const next = later.get(gateway)
    const weaker = next === undefined ? [] : weakened(protection, next)
    add('removedProtections', `protections of Gateway ${gateway} are removed`, [
      ...removed.flatMap(({ name, gateways }) =>
        gateways === undefined || gateways.has(gateway) ? [name] : [],
      ),
      ...(weaker.length > 0 ? [`changeProtection (${weaker.join(', ')})`] : []),
    ])
  }
  return unmet
}

const placeOf = ({ gateway, port, protocol, hostname }: ListenerResource): string =>
  `${gateway.namespace}/${gateway.name} ${port} ${protocol} ${hostname}`

function lost(gateway: string, before: ResourceTable, after: ResourceTable): string[] {
  const remaining = new Set(after.listeners.map(placeOf))
  const ref = objectKey(gatewayRef(gateway))
  return before.listeners
    .filter((one) => objectKey({ kind: 'Gateway', ...one.gateway }) === ref)
    .filter((one) => !remaining.has(placeOf(one)))
    .map(({ section, port, protocol }) => `${section} (${protocol}, port ${port})`)
}

interface RemovedPolicy {
  readonly name: string
  /** The Gateways whose requests it was for; undefined if it is a policy of a backend, which any may use. */
  readonly gateways: ReadonlySet<string> | undefined
}

const nameOf = ({ section, field }: PolicyResource): string => policyName(section, field)

function removedPolicies(
  before: ResourceTable,
  after: ResourceTable,
  { fold }: ComparedStates,
): RemovedPolicy[] {
  const idOf = (one: PolicyResource) => `${nameOf(one)} ${targetKey(one.target)}`
  const remaining = new Set(after.policies.map(idOf))
  const takenOver = new TakenOver(before, after)
  return before.policies.flatMap((policy) => {
    const { target } = policy
    if (!protective.has(nameOf(policy)) || remaining.has(idOf(policy))) return []
    const name = `${nameOf(policy)} of ${objectText(target)}`
    const gateways = gatewaysOf(policy, before)
    if (fold.graph.object(objectKey(target))?.object !== undefined) return [{ name, gateways }]
    const successor = takenOver.by(policy)
    return successor === undefined
      ? []
      : [{ name: `${name} (its requests go to ${successor} without it)`, gateways }]
  })
}

function gatewaysOf({ target }: PolicyResource, table: ResourceTable): RemovedPolicy['gateways'] {
  if (target.kind === 'Gateway') return new Set([`${target.namespace}/${target.name}`])
  const isTarget = ({ kind, namespace, name }: PolicyResource['target']) =>
    kind === target.kind && namespace === target.namespace && name === target.name
  const ofListener = ({ gateway }: ListenerResource) => `${gateway.namespace}/${gateway.name}`
  if (target.kind === 'ListenerSet') {
    return new Set(table.listeners.filter(({ owner }) => isTarget(owner)).map(ofListener))
  }
  if (!target.kind.endsWith('Route')) return undefined
  const rules = table.routes.filter(({ route }) => isTarget(route))
  const keys = rules.flatMap(({ attachments }) => attachments.map(({ listener }) => listener))
  return new Set(keys.flatMap((key) => table.listener(key) ?? []).map(ofListener))
}
