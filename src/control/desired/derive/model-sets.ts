/**
 * The sets of AgentgatewayModels that parents serve. Each listener with models has one, and so has each rule of an
 * HTTPRoute whose backend is `AgentgatewayModel *`. Proxies receive a set as a backend with all providers.
 *
 *   AgentgatewayModel ──► model ──┐
 *   AgentgatewayModel ──► model ──┼──► set of the parent ──► backend, and a route for listeners
 */
import { targetObject } from '../../../ground/model/destinations.ts'
import type {
  ModelProvider,
  ModelTarget,
  ServedModel,
} from '../../../ground/model/model-providers.ts'
import { type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type { Attachment, BackendTarget, Resource } from '../../../ground/model/resources.ts'
import type { Contribution, Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { inferencePoolStage, type PoolView } from './inference-pool.ts'
import { poolContributions } from './inference-pool-status.ts'
import type { ListenerView } from './listeners.ts'
import {
  type ModelView,
  modelIndex,
  modelSetName,
  modelStageName,
  servesModels,
} from './model-view.ts'

export const modelSetStageName = 'model-set'

/** What routes read about the sets of a parent: keys of objects that policies may target. */
export interface ModelSetView {
  readonly objects: readonly string[]
}

interface Member {
  readonly ref: ObjectRef
  readonly view: ModelView
}

export const modelSetStage: Stage = {
  name: modelSetStageName,
  kinds: ['Gateway', 'ListenerSet', 'HTTPRoute'],
  inputs: ({ ref, object }) => [
    object === undefined,
    ref.kind === 'HTTPRoute' ? rulesOf(object).map(servesModels) : [],
  ],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return {}
    const members = read.index(modelIndex, objectKey(self.ref)).flatMap(({ ref }): Member[] => {
      const view = read.value<ModelView>(modelStageName, ref)
      return view === undefined ? [] : [{ ref, view }]
    })
    const isRoute = self.ref.kind === 'HTTPRoute'
    const sets = isRoute ? setsOfRoute(self, members) : setsOfOwner(members)
    if (sets.length === 0) return {}
    return merged(sets.map((set) => deriveSet(self, set, read)))
  },
}

interface ModelSet {
  readonly name: string
  readonly members: readonly Member[]
  /** The listener that serves the set itself; omitted for rules of routes. */
  readonly listener?: ListenerView
}

function membersOf(name: string, members: readonly Member[]): readonly Member[] {
  return members.filter(({ view }) => view.parents.some(({ sets }) => sets.includes(name)))
}

/** A listener without models gets no route. */
function setsOfOwner(members: readonly Member[]): readonly ModelSet[] {
  const attached = members.flatMap(({ view }) => view.parents.flatMap(({ attached }) => attached))
  const listeners = new Map(attached.map(({ listener }) => [listener.key, listener]))
  return [...listeners.values()].flatMap((listener) => {
    const name = modelSetName(listener.owner, listener.section)
    const own = membersOf(name, members)
    return own.length === 0 ? [] : [{ name, members: own, listener }]
  })
}

const rulesOf = (route: ObjectState['object']) =>
  (route === undefined ? undefined : specOf<'HTTPRoute'>(route).rules) ?? []

/** A rule without models has an empty set, whose requests fail with 404. */
function setsOfRoute(
  { ref, object }: ObjectState,
  members: readonly Member[],
): readonly ModelSet[] {
  return rulesOf(object).flatMap((rule, at) => {
    const name = modelSetName(ref, at)
    return servesModels(rule) ? [{ name, members: membersOf(name, members) }] : []
  })
}

interface DerivedSet {
  readonly resources: readonly Resource[]
  readonly objects: readonly string[]
  readonly contributions: readonly Contribution[]
}

function merged(sets: readonly DerivedSet[]): Derived {
  const value: ModelSetView = {
    objects: [...new Set(sets.flatMap(({ objects }) => objects))].sort(),
  }
  return {
    value,
    resources: sets.flatMap(({ resources }) => resources),
    contributions: sets.flatMap(({ contributions }) => contributions),
  }
}

function deriveSet(
  { ref: { namespace } }: ObjectState,
  { name, members, listener }: ModelSet,
  read: Reader,
): DerivedSet {
  const providers = new Providers(namespace)
  const models = members.map((member) => servedModel(member, providers, read))
  const backend: Resource = {
    type: 'backend',
    key: `backend/${namespace}/${name}`,
    namespace,
    name,
    destination: { type: 'ai', groups: [providers.all], models },
  }
  const { objects } = providers
  if (listener === undefined) return { resources: [backend], objects, contributions: [] }
  const attachments = [{ listener: listener.key, hostnames: [listener.hostname] }]
  const gateway = `${listener.gateway.namespace}/${listener.gateway.name}`
  return {
    resources: [backend, routeOf(namespace, name, members, attachments)],
    objects,
    contributions: [
      ...objects.map((object): Contribution => ['reach', object, gateway]),
      ...poolContributions([{ gateway, failure: undefined }], true, pickingPools(providers, read)),
    ],
  }
}

/** The pools whose pickers get the requests of models. */
function pickingPools({ all }: Providers, read: Reader): readonly BackendTarget[] {
  return all.flatMap(({ target }) => {
    if (target?.type !== 'pool') return []
    const view = read.value<PoolView>(inferencePoolStage.name, targetObject(target))
    return view === undefined || view.problem !== undefined ? [] : [target]
  })
}

/** Beginnings of the paths in the APIs of vendors. */
const apiPaths = ['/v1', '/v1beta', '/model']

/** The route of listeners that serve models. It is younger than every route, which wins on equal paths. */
function routeOf(
  namespace: string,
  name: string,
  members: readonly Member[],
  attachments: readonly Attachment[],
): Resource {
  const route = { kind: 'AgentgatewayModel', namespace, name }
  return {
    type: 'route',
    key: `route/${objectKey(route)}/0`,
    route,
    ruleIndex: 0,
    created: Math.max(...members.map(({ view }) => view.age.created)),
    order: Math.max(...members.map(({ view }) => view.age.order)),
    attachments,
    matches: apiPaths.map((value) => ({
      path: { type: 'PathPrefix', value },
      headers: [],
      query: [],
    })),
    filters: [],
    backends: [{ weight: 1, target: { type: 'backend', namespace, name }, filters: [] }],
  }
}

/** The providers of a set. A provider with the same model is in it once, with one state. */
class Providers {
  readonly all: ModelProvider[] = []
  readonly #namespace: string
  readonly #positions = new Map<string, number>()
  readonly #objects = new Set<string>()

  constructor(namespace: string) {
    this.#namespace = namespace
  }

  /** Keys of the objects whose policies apply, and of the Services and InferencePools to connect to. */
  get objects(): readonly string[] {
    return [...this.#objects].sort()
  }

  /** Returns the position of a model's provider, which gets the given name of the model. */
  add(owner: ObjectRef, provider: ModelProvider, model: string | undefined): number {
    const { namespace, name } = owner
    const known = `${namespace}/${name}/${model ?? ''}`
    const found = this.#positions.get(known)
    if (found !== undefined) return found
    const at = this.all.length
    const { config, target } = provider
    this.all.push({
      ...provider,
      name: namespace === this.#namespace ? name : `${namespace}/${name}`,
      config: model === undefined ? config : { ...config, model },
      owner: { kind: 'AgentgatewayModel', namespace, name },
    })
    this.#positions.set(known, at)
    this.#objects.add(objectKey({ kind: 'AgentgatewayModel', namespace, name }))
    if (target?.type === 'service' || target?.type === 'pool') {
      this.#objects.add(objectKey(targetObject(target)))
    }
    return at
  }
}

const isPattern = (match: string): boolean => match.includes('*')

function servedModel({ ref, view }: Member, providers: Providers, read: Reader): ServedModel {
  const { namespace, name } = ref
  const { match, isInternal, provider, virtual } = view
  const base = { name: `${namespace}/${name}`, match, isInternal }
  if (virtual === undefined) {
    const at = provider && providers.add(ref, provider, isPattern(match) ? undefined : match)
    const targets = at === undefined ? [] : [{ provider: at, weight: 1, priority: 0 }]
    return { ...base, choice: 'failover', targets }
  }
  const { targets, ...rules } = virtual
  return {
    ...base,
    ...rules,
    targets: targets.flatMap(({ modelRef, model, ...target }): ModelTarget[] => {
      const owner = { kind: ref.kind, namespace, name: modelRef }
      const found = read.value<ModelView>(modelStageName, owner)
      if (found?.provider === undefined) return []
      const sent = model ?? found.match
      return isPattern(sent)
        ? []
        : [{ ...target, provider: providers.add(owner, found.provider, sent) }]
    }),
  }
}
