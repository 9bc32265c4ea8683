/** Applies `backend.ai` to requests; compiles its guards and route types. */

import { hash } from 'node:crypto'
import { chainOf, type RegexChain } from '../../../../engines/messages/mask/regex-chain.ts'
import { canonicalJson } from '../../../../ground/base/canonical.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import type { PolicyApply, Step } from '../../../policies/define.ts'
import { bindGuard, type Guard, type GuardServices } from './bind-guard.ts'
import { type BackendAiConfig, type GuardConfig, shape } from './config.ts'
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
  readonly requestGuards: readonly Guard[]
  readonly responseGuards: readonly Guard[]
  /** The guards for messages as bytes; undefined if a guard needs parsed messages, or if there are none. */
  readonly requestChain: RegexChain | undefined
  readonly responseChain: RegexChain | undefined
  #fingerprint: string | undefined
  #users = 0
  #isReplaced = false

  /** @throws Error if a secret has not arrived. */
  constructor(config: BackendAiConfig, services: GuardServices) {
    this.config = config
    const { modelAliases, ...others } = config
    this.configWithoutAliases = modelAliases === undefined ? config : others
    this.routeTypes = new RouteTypes(config.routes)
    const bind = (guard: GuardConfig) => bindGuard(guard, services)
    this.requestGuards = config.requestGuards.map(bind)
    this.responseGuards = config.responseGuards.map(bind)
    this.requestChain = chainOf(this.requestGuards)
    this.responseChain = chainOf(this.responseGuards)
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
    for (const guard of [...this.requestGuards, ...this.responseGuards]) guard.dispose()
    this.requestChain?.dispose()
    this.responseChain?.dispose()
  }
}

const apply: PolicyApply<BackendAiConfig> = {
  shape,
  bind: (config, callouts, secrets, host): Step => new AiStep(config, { callouts, secrets, host }),
}

export default apply
