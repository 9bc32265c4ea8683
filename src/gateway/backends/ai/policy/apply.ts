/** Applies `backend.ai` to requests; compiles its guards and route types. */

import { hash } from 'node:crypto'
import { chainOf, RegexChain } from '../../../../engines/messages/mask/regex-chain.ts'
import { canonicalJson } from '../../../../ground/base/canonical.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import type { PolicyApply, Step } from '../../../policies/define.ts'
import {
  areWindowed,
  bindGuards,
  fitWindows,
  type GuardServices,
  isAudit,
  isRegex,
  type PlacedGuard,
} from './bind-guard.ts'
import { type BackendAiConfig, shape } from './config.ts'
import { RouteTypes } from './route-types.ts'

/**
 * The AI backend finds this step among the steps of a provider and uses it; the step does nothing by
 * itself. Requests that use it are counted: a replaced policy releases its memory of the core after its
 * last request.
 */
export class AiStep implements Step {
  /** Empty, because the policy has no connection settings. */
  readonly connection: ConnectionSettings = {}
  readonly config: BackendAiConfig
  /** For requests whose model is settled before a provider is chosen. */
  readonly configWithoutAliases: BackendAiConfig
  readonly routeTypes: RouteTypes
  /** All guards in order, audits included. */
  readonly requestGuards: readonly PlacedGuard[]
  readonly responseGuards: readonly PlacedGuard[]
  /** Whether a guard may mask or reject messages. */
  readonly guardsRequests: boolean
  readonly guardsResponses: boolean
  /** Whether a guard masks requests with placeholders that are restored in responses. */
  readonly restores: boolean
  /** The guards for requests as bytes, audits included; undefined if a guard needs parsed messages, or if there are none. */
  readonly requestChain: RegexChain | undefined
  /** The guards that mask streams as bytes; undefined if one of them needs parsed messages, or if there are none. */
  readonly responseChain: RegexChain | undefined
  /** The first guards of responses, which mask streams as bytes before others check them in windows. */
  readonly leadingChain: RegexChain | undefined
  /** Whether services check streams in windows after `leadingChain`. */
  readonly isWindowed: boolean
  #fitsWindows: boolean | undefined
  readonly #auditChains = new Map<PlacedGuard, RegexChain>()
  #fingerprint: string | undefined
  #users = 0
  #isReplaced = false

  /** @throws Error if a secret has not arrived. */
  constructor(config: BackendAiConfig, services: GuardServices) {
    this.config = config
    const { modelAliases, ...others } = config
    this.configWithoutAliases = modelAliases === undefined ? config : others
    this.routeTypes = new RouteTypes(config.routes)
    this.requestGuards = bindGuards(config.requestGuards, 'Request', services)
    this.responseGuards = bindGuards(config.responseGuards, 'Response', services)
    const acting = this.responseGuards.filter((placed) => !isAudit(placed))
    this.guardsRequests = !this.requestGuards.every(isAudit)
    this.guardsResponses = acting.length > 0
    this.restores = this.requestGuards.some(
      ({ guard }) => isRegex(guard) && guard.action === 'Reversible',
    )
    this.requestChain = chainOf(usual(this.requestGuards))
    this.responseChain = chainOf(usual(acting))
    this.isWindowed = areWindowed(this.responseGuards)
    const masks = acting.map(({ guard }) => guard).filter(isRegex)
    this.leadingChain = this.isWindowed ? chainOf(masks) : undefined
  }

  /** The chain that reads streams for an audit: the guards before it that mask, and then the audit. */
  auditChain(audit: PlacedGuard): RegexChain {
    const known = this.#auditChains.get(audit)
    if (known !== undefined) return known
    const before = this.responseGuards.filter((one) => one.at < audit.at && !isAudit(one))
    const chain = new RegexChain([...before, audit].map(({ guard }) => guard).filter(isRegex))
    this.#auditChains.set(audit, chain)
    return chain
  }

  /** Whether all guards, patterns included, can check the parsed texts of streams in windows. */
  get fitsWindows(): boolean {
    this.#fitsWindows ??= fitWindows(this.responseGuards)
    return this.#fitsWindows
  }

  /** Digest of all settings, guards included. */
  get fingerprint(): string {
    this.#fingerprint ??= hash('sha256', canonicalJson(this.config), 'base64url')
    return this.#fingerprint
  }

  /** Called when a request begins to use the step; the request must call `release` when it ends. */
  retain(): void {
    this.#users++
  }

  release(): void {
    this.#users--
    if (this.#isReplaced) this.dispose()
  }

  /** Called when the policy was replaced. Requests that already use it finish with it. */
  dispose(): void {
    this.#isReplaced = true
    if (this.#users > 0) return
    for (const { guard } of [...this.requestGuards, ...this.responseGuards]) guard.dispose()
    for (const chain of this.#auditChains.values()) chain.dispose()
    this.requestChain?.dispose()
    this.responseChain?.dispose()
    this.leadingChain?.dispose()
  }
}

/** Returns the guards for the core, which knows no scopes: none if one of them has a scope. */
const usual = (guards: readonly PlacedGuard[]): readonly PlacedGuard['guard'][] =>
  guards.every(({ scope }) => scope === undefined) ? guards.map(({ guard }) => guard) : []

const apply: PolicyApply<BackendAiConfig> = {
  shape,
  bind: (config, callouts, secrets, host): Step => new AiStep(config, { callouts, secrets, host }),
}

export default apply
