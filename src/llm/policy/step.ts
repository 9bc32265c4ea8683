/** `backend.ai` bound for requests: nothing is compiled later than here. */
import { compileRegex, type Mask } from '../../core/index.ts'
import type { ConnectionSettings } from '../../exchange/connection.ts'
import type { Callouts, HeaderFields, SecretValues } from '../../exchange/exchange.ts'
import type { PolicyHost } from '../../exchange/rate-limits.ts'
import type { BackendTarget } from '../../model/resources.ts'
import authApply from '../../policies/backend-simple/auth/apply.ts'
import httpApply from '../../policies/backend-simple/http/apply.ts'
import tcpApply from '../../policies/backend-simple/tcp/apply.ts'
import tlsApply from '../../policies/backend-simple/tls/apply.ts'
import type { PolicyApply, Step } from '../../policies/define.ts'
import { compileGuardMask } from '../guards/regex-guard.ts'
import type { BackendAiConfig, GuardConfig, HeaderForward, Refusal } from './config.ts'

export type Guard =
  | {
      readonly type: 'regex'
      readonly refusal: Refusal
      readonly mask: Mask
      readonly action: 'Mask' | 'Reject'
    }
  | {
      readonly type: 'webhook'
      readonly refusal: Refusal
      readonly target: BackendTarget
      /** Headers that are sent along. */
      readonly forwarded: (headers: HeaderFields) => (readonly [string, string])[]
    }
  | {
      readonly type: 'moderation'
      readonly refusal: Refusal
      readonly model: string | undefined
      /** Settings of the connection, and the credentials. */
      readonly steps: readonly Step[]
    }

/** What policies may use. */
interface Services {
  readonly callouts: Callouts
  readonly secrets: SecretValues
  readonly host: PolicyHost
}

/** The data plane finds it among the steps of a provider and asks it; it does nothing by itself. */
export class AiStep implements Step {
  /** Nothing is settled for connections. */
  readonly connection: ConnectionSettings = {}
  readonly config: BackendAiConfig
  readonly requestGuards: readonly Guard[]
  readonly responseGuards: readonly Guard[]

  /** @throws Error where a secret has not arrived. */
  constructor(config: BackendAiConfig, services: Services) {
    this.config = config
    const bind = (guard: GuardConfig) => bindGuard(guard, services)
    this.requestGuards = config.requestGuards.map(bind)
    this.responseGuards = config.responseGuards.map(bind)
  }
}

const simpleAppliers: Readonly<Record<string, PolicyApply<never>>> = {
  tcp: tcpApply,
  tls: tlsApply,
  http: httpApply,
  auth: authApply,
}

function bindGuard(guard: GuardConfig, { callouts, secrets, host }: Services): Guard {
  const { refusal } = guard
  switch (guard.type) {
    case 'regex':
      return { type: 'regex', refusal, mask: compileGuardMask(guard), action: guard.action }
    case 'webhook': {
      const { target, forward } = guard
      return { type: 'webhook', refusal, target, forwarded: forwarder(forward) }
    }
    case 'moderation': {
      const steps = guard.policies.flatMap(
        ({ field, config }) =>
          simpleAppliers[field]?.bind(config as never, callouts, secrets, host) ?? [],
      )
      return { type: 'moderation', refusal, model: guard.model, steps }
    }
  }
}

/** Says how long the call's own body is. */
const neverForwarded = 'content-length'

function forwarder(forward: readonly HeaderForward[]) {
  const wanted = forward
    .filter(({ name }) => name !== neverForwarded)
    .map(({ name, type, value }) => ({ name, matches: matcher(type, value) }))
  return (headers: HeaderFields) =>
    wanted.flatMap(({ name, matches }) => {
      const values = headers.getAll(name)
      return values.some(matches) ? values.map((value) => [name, value] as const) : []
    })
}

function matcher(type: HeaderForward['type'], wanted: string): (value: string) => boolean {
  if (type === 'Exact') return (value) => value === wanted
  const outcome = compileRegex(wanted, { matchOnly: true })
  if (!outcome.ok) throw new Error(outcome.message)
  return (value) => outcome.regex.fullMatch(value)
}
