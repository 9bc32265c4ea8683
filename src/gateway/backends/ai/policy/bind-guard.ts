/** Binds the compiled guards of a policy to what they need. */
import { RegexGuard } from '../../../../engines/messages/mask/regex-guard.ts'
import type { Callouts, SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import authApply from '../../../policies/backend-simple/auth/apply.ts'
import httpApply from '../../../policies/backend-simple/http/apply.ts'
import tcpApply from '../../../policies/backend-simple/tcp/apply.ts'
import tlsApply from '../../../policies/backend-simple/tls/apply.ts'
import type { PolicyApply } from '../../../policies/define.ts'
import { ModerationGuard } from '../guards/moderation.ts'
import { WebhookGuard } from '../guards/webhook.ts'
import type { GuardConfig } from './config.ts'

export type Guard = RegexGuard | WebhookGuard | ModerationGuard

/** Dependencies of guards that call other services. */
export interface GuardServices {
  readonly callouts: Callouts
  readonly secrets: SecretValues
  readonly host: PolicyHost
}

const simpleAppliers: Readonly<Record<string, Pick<PolicyApply<never>, 'bind'>>> = {
  tcp: tcpApply,
  tls: tlsApply,
  http: httpApply,
  auth: authApply,
}

/** @throws Error if a secret has not arrived. */
export function bindGuard(guard: GuardConfig, { callouts, secrets, host }: GuardServices): Guard {
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
