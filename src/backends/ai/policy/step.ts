/** `backend.ai` bound for requests: nothing is compiled later than here. */
import type { ConnectionSettings } from '../../../exchange/connection.ts'
import type { Callouts, SecretValues } from '../../../exchange/exchange.ts'
import type { PolicyHost } from '../../../exchange/rate-limits.ts'
import authApply from '../../../policies/backend-simple/auth/apply.ts'
import httpApply from '../../../policies/backend-simple/http/apply.ts'
import tcpApply from '../../../policies/backend-simple/tcp/apply.ts'
import tlsApply from '../../../policies/backend-simple/tls/apply.ts'
import type { PolicyApply, Step } from '../../../policies/define.ts'
import { type Guard, ModerationGuard, RegexGuard, WebhookGuard } from '../guards/bound.ts'
import { RouteTypes } from '../request/route-type.ts'
import type { BackendAiConfig, GuardConfig } from './config.ts'

/** What policies may use. */
interface Services {
  readonly callouts: Callouts
  readonly secrets: SecretValues
  readonly host: PolicyHost
}

/**
 * The data plane finds it among the steps of a provider and asks it; it does nothing by itself. Who
 * uses it says so: memory of the core goes with the last user of a policy that was replaced.
 */
export class AiStep implements Step {
  /** Nothing is settled for connections. */
  readonly connection: ConnectionSettings = {}
  readonly config: BackendAiConfig
  readonly routeTypes: RouteTypes
  readonly requestGuards: readonly Guard[]
  readonly responseGuards: readonly Guard[]
  #users = 0
  #isReplaced = false

  /** @throws Error where a secret has not arrived. */
  constructor(config: BackendAiConfig, services: Services) {
    this.config = config
    this.routeTypes = new RouteTypes(config.routes)
    const bind = (guard: GuardConfig) => bindGuard(guard, services)
    this.requestGuards = config.requestGuards.map(bind)
    this.responseGuards = config.responseGuards.map(bind)
  }

  /** A request begins to use it; `release` follows once. */
  retain(): void {
    this.#users++
  }

  release(): void {
    this.#users--
    if (this.#isReplaced) this.dispose()
  }

  /** The policy is gone. Requests that use it finish with it. */
  dispose(): void {
    this.#isReplaced = true
    if (this.#users > 0) return
    for (const guard of [...this.requestGuards, ...this.responseGuards]) guard.dispose()
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
