/** Collects the settings of one route while its plugins or annotations are read, then adds them as policies. */
import { type Conversion, compact, type Fields, filled } from './conversion.ts'
import type { SourceField } from './field.ts'
import { modelGroups } from './models.ts'
import { toRoute } from './targets.ts'

type HeaderLists = Record<'set' | 'add' | 'remove', unknown[]>

const emptyHeaders = (): HeaderLists => ({ set: [], add: [], remove: [] })
const changesOf = (lists: HeaderLists): Fields | undefined =>
  filled(Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)))

interface AuthorizationRule {
  readonly action: 'Require' | 'Deny'
  /** The rule matches if one of them is true. */
  readonly expressions: readonly string[]
}

export class RoutePlan {
  /** Fields of `traffic` that are set as a whole. */
  readonly traffic: Record<string, unknown> = {}
  readonly limits: Fields[] = []
  /** A limit that a rate limit server counts. */
  globalLimit: Fields | undefined
  readonly requestHeaders = emptyHeaders()
  readonly responseHeaders = emptyHeaders()
  /** Headers whose values are expressions. */
  readonly computedRequest: Fields[] = []
  readonly computedResponse: Fields[] = []
  readonly authorization: AuthorizationRule[] = []
  /** Set if the backends of the route are agents (A2A). Taken by the first backend that becomes one. */
  a2a: SourceField | undefined
  /** Fields of `backend.ai`. */
  readonly ai: Record<string, unknown> = {}
  /** Fields of `backend.mcp`. */
  readonly mcp: Record<string, unknown> = {}
  readonly requestGuards: Fields[] = []
  readonly responseGuards: Fields[] = []
  /** Providers of the models that respond in place of a service, by priority. */
  models: readonly (readonly Fields[])[] | undefined

  #aiPolicy(): Fields {
    const request = filled(this.requestGuards)
    const response = filled(this.responseGuards)
    const promptGuard = request || response ? { request, response } : undefined
    return compact({ ...this.ai, promptGuard })
  }

  /** The AI backend of the route; undefined if it has none. */
  modelBackend(): Fields | undefined {
    if (this.models === undefined) return undefined
    const ai = this.#aiPolicy()
    const read = (model: Fields) => ({ name: 'model', provider: withAi(model, ai) })
    return { ai: modelGroups(this.models, read) }
  }

  /** Adds the policies for these routes. */
  addPolicies(
    result: Conversion,
    name: string,
    routes: readonly string[],
    origin: SourceField,
  ): void {
    const targets = routes.map(toRoute)
    const request = changesOf(this.requestHeaders)
    const response = changesOf(this.responseHeaders)
    const computed = {
      request: this.computedRequest.length > 0 ? { set: this.computedRequest } : undefined,
      response: this.computedResponse.length > 0 ? { set: this.computedResponse } : undefined,
    }
    const local = filled(this.limits)
    const traffic = compact({
      ...this.traffic,
      rateLimit: local || this.globalLimit ? { local, global: this.globalLimit } : undefined,
      headerModifiers: request || response ? { request, response } : undefined,
      transformation: computed.request || computed.response ? computed : undefined,
    })
    const ai = this.#aiPolicy()
    const backend = compact({
      ai: filled(ai),
      mcp: filled(this.mcp),
    })
    result.policy(name, targets, { traffic, backend }, origin)
    this.authorization.forEach(({ action, expressions }, index) => {
      const authorization = { action, policy: { matchExpressions: expressions } }
      result.policy(`${name}-rule-${index + 1}`, targets, { traffic: { authorization } }, origin)
    })
  }
}

/**
 * Adds settings to the `ai` of a provider. It replaces that of the backend and of policies as a whole, so that
 * their guards must be in both.
 */
export function withAi(provider: Fields, ai: Fields): Fields {
  const policies = (provider.policies ?? {}) as Fields
  if (policies.ai === undefined) return provider
  return { ...provider, policies: { ...policies, ai: { ...ai, ...(policies.ai as Fields) } } }
}

/** A path or host pattern with special characters escaped. */
export const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
