/** The models that clients can ask for by name, and the choice among the providers that serve one. */
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import { matchesName } from '../../../../engines/messages/catalog/names.ts'
import type {
  FailoverRules,
  ModelChoice,
  ServedModel,
} from '../../../../ground/model/model-providers.ts'
import { pickBackend } from '../../../proxy/config/rules.ts'
import type { Chance } from '../../../proxy/upstream/endpoint.ts'
import { Expression } from '../../../variables/index.ts'
import { isAvailable, type ProviderEndpoint } from './provider-endpoint.ts'
import { type Affinity, affinityOf, bestByHash } from './session-affinity.ts'

type Groups = readonly (readonly ProviderEndpoint[])[]

interface CompiledTarget {
  readonly provider: ProviderEndpoint
  readonly weight: number
  readonly when: Expression | undefined
}

export interface CompiledModel {
  /** `namespace/name` of the object. */
  readonly name: string
  readonly match: string
  readonly isInternal: boolean
  readonly choice: ModelChoice
  readonly targets: readonly CompiledTarget[]
  /** The providers by priority. */
  readonly groups: Groups
  readonly affinity: Expression | undefined
  /** Returns the failures of a provider after which another one is tried; undefined for the usual ones. */
  failoverOf(provider: ProviderEndpoint | undefined): FailoverRules | undefined
  /** Whether its expressions read the body of the request. */
  readonly readsBody: boolean
}

const noGroups: Groups = []

export class ServedModels {
  readonly all: readonly CompiledModel[]
  readonly #exact: ReadonlyMap<string, CompiledModel>
  /** Models that match by a prefix or a suffix, the longest one first. */
  readonly #patterns: readonly CompiledModel[]

  constructor(models: readonly ServedModel[], providers: readonly ProviderEndpoint[]) {
    this.all = models.map((model) => compileModel(model, providers))
    const isPattern = ({ match }: CompiledModel) => match.includes('*')
    const exact = this.all.filter((model) => !isPattern(model))
    this.#exact = new Map(exact.map((model) => [model.match, model]))
    this.#patterns = this.all.filter(isPattern).sort((a, b) => b.match.length - a.match.length)
  }

  /** Returns the model with a name, or else the one with the longest pattern that the name matches. */
  find(name: string): CompiledModel | undefined {
    return this.#exact.get(name) ?? this.#patterns.find(({ match }) => matchesName(match, name))
  }
}

function compileModel(model: ServedModel, providers: readonly ProviderEndpoint[]): CompiledModel {
  const { name, match, isInternal, choice, affinity, failover } = model
  const found = model.targets.flatMap(({ provider: at, when, ...target }) => {
    const provider = providers[at]
    const expression = when === undefined ? undefined : new Expression(when)
    return provider === undefined ? [] : [{ ...target, provider, when: expression }]
  })
  const byPriority = Map.groupBy(found, ({ priority }) => priority)
  const groups = [...byPriority]
    .sort(([a], [b]) => a - b)
    .map(([, targets]) => targets.map(({ provider }) => provider))
  const source = affinity === undefined ? undefined : new Expression(affinity)
  const readsBody = source?.request === true || found.some(({ when }) => when?.request === true)
  const own = found.find((target) => target.failover !== undefined)
  const failoverOf: CompiledModel['failoverOf'] =
    own === undefined
      ? () => failover
      : (one) => found.find(({ provider }) => provider === one)?.failover ?? failover
  const base = { name, match, isInternal, choice, failoverOf, readsBody }
  return { ...base, targets: found, groups, affinity: source }
}

/** What one request gets: the providers by priority, and what keeps its session at one of them. */
export interface ModelSelection {
  readonly model: CompiledModel
  readonly groups: Groups
  readonly affinity: Affinity | undefined
  /** The name after aliases, which a provider gets that has no model of its own. */
  readonly sent: string
}

/** Chooses the providers of a request. Expressions can read the head and the body, which must be in memory. */
export function selectProviders(
  model: CompiledModel,
  sent: string,
  exchange: ServerExchange,
  chance: Chance,
): ModelSelection {
  const affinity = affinityOf(model.affinity, exchange)
  switch (model.choice) {
    case 'failover':
      return { model, sent, affinity, groups: model.groups }
    case 'weighted': {
      const chosen = weightedTarget(model.targets, affinity, chance)
      return { model, sent, affinity, groups: chosen === undefined ? noGroups : [[chosen]] }
    }
    case 'conditional': {
      const chosen = model.targets.find(({ when }) => isTrue(when, exchange))
      return {
        model,
        sent,
        affinity,
        groups: chosen === undefined ? noGroups : [[chosen.provider]],
      }
    }
  }
}

const isTrue = (when: Expression | undefined, exchange: ServerExchange): boolean =>
  when === undefined || when.evaluate(exchange) === true

/** Ejected providers are skipped, unless all are ejected. */
function weightedTarget(
  targets: readonly CompiledTarget[],
  affinity: Affinity | undefined,
  chance: Chance,
): ProviderEndpoint | undefined {
  const available = targets.filter(({ provider }) => isAvailable(provider, chance))
  const left = available.length > 0 ? available : targets
  if (affinity !== undefined) return bestByHash(left, affinity, keyOf, weightOf)?.provider
  const totalWeight = left.reduce((sum, { weight }) => sum + weight, 0)
  return pickBackend({ backends: left, totalWeight }, chance.random())?.provider
}

const keyOf = ({ provider }: CompiledTarget): string => provider.key
const weightOf = ({ weight }: CompiledTarget): number => weight
