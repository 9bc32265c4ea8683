/** Applies `backend.ai` to requests; compiles its guards and route types. */

import { chainOf, type RegexChain } from '../../../../engines/messages/mask/regex-chain.ts'
import { RegexGuard } from '../../../../engines/messages/mask/regex-guard.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import type { Callouts, SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import authApply from '../../../policies/backend-simple/auth/apply.ts'
import httpApply from '../../../policies/backend-simple/http/apply.ts'
import tcpApply from '../../../policies/backend-simple/tcp/apply.ts'
import tlsApply from '../../../policies/backend-simple/tls/apply.ts'
import type { PolicyApply, Step } from '../../../policies/define.ts'
import { ModerationGuard } from '../guards/moderation.ts'
import { WebhookGuard } from '../guards/webhook.ts'
import { type BackendAiConfig, type GuardConfig, shape } from './config.ts'
import { RouteTypes } from './route-types.ts'

export type Guard = RegexGuard | WebhookGuard | ModerationGuard

/** Dependencies of guards that call other services. */
interface Services {
  readonly callouts: Callouts
  readonly secrets: SecretValues
  readonly host: PolicyHost
}

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
  #users = 0
  #isReplaced = false

  /** @throws Error if a secret has not arrived. */
  constructor(config: BackendAiConfig, services: Services) {
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

const simpleAppliers: Readonly<Record<string, Pick<PolicyApply<never>, 'bind'>>> = {
  tcp: tcpApply,
  tls: tlsApply,
  http: httpApply,
  auth: authApply,
}

function bindGuard(guard: GuardConfig, { callouts, secrets, host }: Services): Guard {
  switch (guard.type) {
    case 'regex':
      return new RegexGuard(guard)
    case 'webhook':
      return new WebhookGuard(guard, callouts)
    case 'moderation': {
      const steps = guard.policies.flatMap(
        ({ field, config }) =>
          simpleAppliers[field]?.bind(config as never, callouts, secrets, host) ?? [],
      )
      return new ModerationGuard(guard, steps, callouts)
    }
  }
}

const apply: PolicyApply<BackendAiConfig> = {
  shape,
  bind: (config, callouts, secrets, host): Step => new AiStep(config, { callouts, secrets, host }),
}

export default apply
