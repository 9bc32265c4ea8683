/** Collects the settings of one route while its plugins or annotations are read, then adds them as policies. */
import { type Conversion, compact, type Fields } from './conversion.ts'
import type { SourceField } from './field.ts'
import { namedProviders } from './models.ts'
import { toRoute } from './targets.ts'

type HeaderLists = Record<'set' | 'add' | 'remove', unknown[]>

const emptyHeaders = (): HeaderLists => ({ set: [], add: [], remove: [] })
const filled = (lists: HeaderLists): Fields | undefined => {
  const entries = Object.entries(lists).filter(([, list]) => list.length > 0)
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}

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
  /** Fields of `backend.ai`. */
  readonly ai: Record<string, unknown> = {}
  /** Fields of `backend.mcp`. */
  readonly mcp: Record<string, unknown> = {}
  readonly requestGuards: Fields[] = []
  readonly responseGuards: Fields[] = []
  /** Providers of the models that answer instead of a service, by priority. */
  models: readonly (readonly Fields[])[] | undefined

  #aiPolicy(): Fields {
    const request = this.requestGuards.length > 0 ? this.requestGuards : undefined
    const response = this.responseGuards.length > 0 ? this.responseGuards : undefined
    const promptGuard = request || response ? { request, response } : undefined
    return compact({ ...this.ai, promptGuard })
  }

  /** The AI backend of the route; undefined if it has none. */
  modelBackend(): Fields | undefined {
    if (this.models === undefined) return undefined
    const named = namedProviders(
      this.models.flat().map((provider) => withAi(provider, this.#aiPolicy())),
      this.models.flat().map(() => 'model'),
    )
    let next = 0
    const groups = this.models.map((group) => ({ providers: group.map(() => named[next++]) }))
    return { ai: { groups } }
  }

  /** Adds the policies for these routes. */
  addPolicies(
    result: Conversion,
    name: string,
    routes: readonly string[],
    origin: SourceField,
  ): void {
    const targets = routes.map((route) => toRoute(route))
    const request = filled(this.requestHeaders)
    const response = filled(this.responseHeaders)
    const computed = {
      request: this.computedRequest.length > 0 ? { set: this.computedRequest } : undefined,
      response: this.computedResponse.length > 0 ? { set: this.computedResponse } : undefined,
    }
    // A transformation of the route replaces that of the Gateway, which sets these headers otherwise.
    if (
      (computed.request ?? computed.response) !== undefined &&
      result.forwardedHeaders.length > 0
    ) {
      computed.request = { set: [...result.forwardedHeaders, ...this.computedRequest] }
    }
    const local = this.limits.length > 0 ? this.limits : undefined
    const traffic = compact({
      ...this.traffic,
      rateLimit: local || this.globalLimit ? { local, global: this.globalLimit } : undefined,
      headerModifiers: request || response ? { request, response } : undefined,
      transformation: computed.request || computed.response ? computed : undefined,
    })
    const ai = this.#aiPolicy()
    const backend = compact({
      ai: Object.keys(ai).length > 0 ? ai : undefined,
      mcp: Object.keys(this.mcp).length > 0 ? this.mcp : undefined,
    })
    result.policy(result.nameOf('GatewayPolicy', name), targets, { traffic, backend }, origin)
    this.authorization.forEach(({ action, expressions }, index) => {
      const policyName = result.nameOf('GatewayPolicy', `${name}-rule-${index + 1}`)
      const authorization = { action, policy: { matchExpressions: expressions } }
      result.policy(policyName, targets, { traffic: { authorization } }, origin)
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
