/** What the filter does for a rule of a route, from the policies that apply to it. */

import { bothForms } from '../../../engines/messages/mask/regex-guard.ts'
import type {
  BackendAiConfig,
  GuardConfig,
  ServiceConfig,
} from '../../../gateway/backends/ai/policy/config.ts'
import { endingsOf } from '../../../gateway/backends/ai/policy/route-types.ts'
import { isConditional } from '../../../gateway/policies/conditional.ts'
import type { LocalLimit } from '../../../gateway/policies/rate-limit/config.ts'
import { policyRegistry } from '../../../gateway/policies/registry.ts'
import { objectText } from '../../../ground/model/names.ts'
import type { HeaderChanges } from '../../../ground/model/resources.ts'
import type { TracedField } from '../../../past/explain/effective-policies.ts'
import type { FilterActions, FilterGap, FilterModel } from './types.ts'

type Policy = TracedField['policies'][number]

interface RateLimitConfig {
  readonly local: readonly LocalLimit[]
  readonly global?: unknown
}

interface HeaderConfig {
  readonly request?: HeaderChanges
  readonly response?: HeaderChanges
}

/** Fields that only affect how Envoy reaches its upstream or its clients, which stays with Envoy. */
const ofEnvoy = new Set([
  'backend.auth',
  'backend.http',
  'backend.tcp',
  'backend.tls',
  'traffic.hostRewrite',
  'traffic.retry',
  'traffic.timeouts',
])

/** Endings of paths that the filter reads if `routes` is not set. */
const filterEndings = [
  '/chat/completions',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/responses',
  '/embeddings',
] as const

/** Fields of `backend.ai` that change requests but protect nothing. */
const settings = ['prompt', 'defaults', 'overrides', 'modelAliases', 'caching'] as const

/** A field that this version does not know may protect something. */
const isSecurity = (section: string, field: string): boolean =>
  policyRegistry.find((one) => one.section === section && one.field === field)?.security !== false

export class ActionCompiler {
  readonly gaps: FilterGap[] = []

  /** Compiles fields of one section. Fields that a filter cannot apply become gaps. */
  compile(fields: readonly TracedField[]): FilterActions {
    return Object.assign({}, ...fields.map((field) => this.#compileField(field)))
  }

  #compileField({ section, field, policies }: TracedField): FilterActions {
    const policy = policies.findLast(({ state }) => state === 'in force')
    if (policy === undefined) return {}
    const path = `${section}.${field}`
    if (policy.unenforceable !== undefined) {
      this.#note(policy, `${path}: ${policy.unenforceable}; requests fail with 500`)
      return { unusable: true }
    }
    if (isConditional(policy.config)) {
      this.#add(
        policy,
        `${path}.conditional: the filter evaluates no conditions`,
        isSecurity(section, field),
      )
      return {}
    }
    if (path === 'traffic.rateLimit') return this.#rateLimit(policy, path)
    if (path === 'traffic.headerModifiers') {
      return { headerModifiers: policy.config as HeaderConfig }
    }
    if (path === 'backend.ai') return { ai: this.#model(policy, path) }
    if (ofEnvoy.has(path)) this.#note(policy, `${path}: configure it in Envoy`)
    else this.#refuse(policy, path, section, field)
    return {}
  }

  #refuse(policy: Policy, path: string, section: string, field: string): void {
    this.#add(policy, `${path}: not supported by the filter`, isSecurity(section, field))
  }

  #note(policy: Policy, message: string): void {
    this.#add(policy, message, false)
  }

  #add({ policy }: Policy, message: string, isProtection: boolean): void {
    this.gaps.push({ object: objectText(policy), message, isProtection })
  }

  #rateLimit(policy: Policy, path: string): FilterActions {
    const { local, global } = policy.config as RateLimitConfig
    if (global !== undefined) {
      this.#add(policy, `${path}.global: the filter cannot ask a rate limit server`, true)
    }
    if (local.length === 0) return {}
    const limits = local.map(({ counts, rate, unit, burst }) => ({
      ...(counts === 'tokens' ? { tokens: rate } : { requests: rate }),
      unit,
      ...(burst > 0 && { burst }),
    }))
    const name = `${objectText(policy.policy)} ${policy.attachedTo}`
    return { rateLimit: { name, local: limits } }
  }

  #model(policy: Policy, path: string): FilterModel {
    const config = policy.config as BackendAiConfig
    for (const name of settings) {
      if (config[name] !== undefined) this.#note(policy, `${path}.${name}: not done by the filter`)
    }
    const request = this.#guards(policy, config.requestGuards, `${path}.promptGuard.request`)
    const response = this.#guards(policy, config.responseGuards, `${path}.promptGuard.response`)
    const routes = [
      ...endingsOf(config.routes ?? {}).map(({ text, type }) => ({ ending: text, type })),
      ...(config.routes?.['*'] === undefined ? [] : [{ ending: '*', type: config.routes['*'] }]),
    ]
    if (request.length + response.length > 0) this.#noteUnread(policy, path, config)
    const promptGuard = {
      ...(request.length > 0 && { request }),
      ...(response.length > 0 && { response }),
    }
    return {
      ...(routes.length > 0 && { routes }),
      ...(Object.keys(promptGuard).length > 0 && { promptGuard }),
    }
  }

  /** Notes the requests that guards refuse or do not read because of their paths. */
  #noteUnread(policy: Policy, path: string, { routes }: BackendAiConfig): void {
    if (routes === undefined) {
      this.#note(
        policy,
        `${path}.routes: not set; requests fail with 400 unless their path ends with ${filterEndings.join(', ')}`,
      )
    } else if (routes['*'] === 'Passthrough') {
      this.#note(policy, `${path}.routes['*']: requests to other paths pass without guards`)
    }
  }

  #guards(policy: Policy, guards: readonly GuardConfig[], path: string) {
    return guards.flatMap((guard, at) => {
      if (guard.type !== 'regex') {
        const name = guard.type === 'service' ? nameOfService(guard) : guard.type
        this.#add(policy, `${path}[${at}].${name}: the filter calls no services`, true)
        return []
      }
      if (guard.isAudit === true) {
        this.#note(policy, `${path}[${at}].regex.action: the filter does not audit`)
        return []
      }
      if (guard.action === 'Reversible') {
        this.#note(
          policy,
          `${path}[${at}].regex.action: the filter masks matches and does not restore them`,
        )
      }
      const { matches, builtins, words = [], refusal } = guard
      const action: 'Mask' | 'Reject' = guard.action === 'Reject' ? 'Reject' : 'Mask'
      const regex = {
        ...(matches.length > 0 && { matches }),
        ...(builtins.length > 0 && { builtins }),
        ...(words.length > 0 && { words: bothForms(words) }),
        action,
      }
      const response = { message: refusal.message, statusCode: refusal.status }
      return [{ regex, ...(action === 'Reject' && { response }) }]
    })
  }
}

/** Two fields of a guard select a moderation service. */
const nameOfService = ({ service, target }: ServiceConfig): string =>
  service === 'moderation' && target === undefined ? 'vendorAModeration' : service
