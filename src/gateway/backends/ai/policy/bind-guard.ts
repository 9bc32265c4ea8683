/** Binds the compiled guards of a policy to what they need. */
import { optInPlaces, type Place, type Places } from '../../../../engines/messages/mask/places.ts'
import { RegexGuard } from '../../../../engines/messages/mask/regex-guard.ts'
import { windowOverlap } from '../../../../engines/messages/mask/stream-windows.ts'
import type { Callouts, SecretValues } from '../../../../ground/exchange/exchange.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import authApply from '../../../policies/backend-simple/auth/apply.ts'
import httpApply from '../../../policies/backend-simple/http/apply.ts'
import tcpApply from '../../../policies/backend-simple/tcp/apply.ts'
import tlsApply from '../../../policies/backend-simple/tls/apply.ts'
import type { PolicyApply } from '../../../policies/define.ts'
import type { AskingGuard } from '../guards/ask-guard.ts'
import type { GuardAction } from '../guards/guard-call.ts'
import { HostConnection, toTarget } from '../guards/service-connection.ts'
import { ServiceGuard } from '../guards/service-guard.ts'
import { serviceOf } from '../guards/services/index.ts'
import { WebhookGuard } from '../guards/webhook.ts'
import type { GuardConfig, GuardSettings } from './config.ts'
import { isModelPlace } from './scope.ts'

type Guard = RegexGuard | AskingGuard

export const isRegex = (guard: Guard): guard is RegexGuard => guard.type === 'regex'

/** A guard of a policy, and its position in the list of its phase. */
export interface PlacedGuard {
  readonly phase: 'Request' | 'Response'
  readonly at: number
  readonly guard: Guard
  readonly settings: GuardSettings
  /** The places that the guard reads; undefined for the usual ones. */
  readonly scope?: Places | undefined
}

export const isAudit = ({ settings }: PlacedGuard): boolean => settings.isAudit === true

/** Opt-in texts are judged only as a whole. The core masks in all usual places, so it cannot apply a scope. */
const readsUsualTexts = ({ guard, scope }: PlacedGuard): boolean =>
  scope === undefined || (!isRegex(guard) && [...optInPlaces].every((place) => !scope.has(place)))

/** Whether services can check streams in windows after the core has masked with all patterns, which must come first. */
export function areWindowed(guards: readonly PlacedGuard[]): boolean {
  const first = guards.findIndex(({ guard }) => !isRegex(guard))
  if (first < 0 || !guards.every(readsUsualTexts)) return false
  return guards.slice(first).every(({ guard }) => !isRegex(guard) && guard.readsWindows)
}

/**
 * Whether all guards can check streams in windows, in any order: each match of a pattern must be in one window, with the
 * text that decides whether it is one.
 */
export const fitWindows = (guards: readonly PlacedGuard[]): boolean =>
  guards.every((placed) => {
    const { guard } = placed
    if (!readsUsualTexts(placed)) return false
    if (!isRegex(guard)) return guard.readsWindows
    if (guard.readsBefore) return false
    const { holdBytes } = guard.mask
    return holdBytes !== undefined && holdBytes <= windowOverlap
  })

/** Whether later guards must wait for the result, because the guard may change the texts. */
const mayChange = (placed: PlacedGuard): boolean =>
  !isAudit(placed) && (isRegex(placed.guard) || placed.guard.masks)

/** Divides guards into groups. The guards of a group read the same texts, so that they can be asked at once. */
export function concurrentGroups(
  guards: readonly PlacedGuard[],
): readonly (readonly PlacedGuard[])[] {
  const groups: PlacedGuard[][] = []
  let isOpen = false
  for (const placed of guards) {
    if (isOpen) groups.at(-1)?.push(placed)
    else groups.push([placed])
    isOpen = !mayChange(placed)
  }
  return groups
}

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

/** Binds the guards of one phase. @throws Error if a secret has not arrived. */
export const bindGuards = (
  configs: readonly GuardConfig[],
  phase: PlacedGuard['phase'],
  services: GuardServices,
): PlacedGuard[] =>
  configs.map((settings, at) => {
    const scope = settings.scope && new Set<Place>(settings.scope.filter(isModelPlace))
    return { phase, at, guard: bindGuard(settings, services), settings, scope }
  })

/** Returns the guards for one message: an audit may read only a share of them. */
export function sampled(guards: readonly PlacedGuard[]): readonly PlacedGuard[] {
  if (guards.every(({ settings }) => settings.percent === undefined)) return guards
  return guards.filter(({ settings: { percent = 100 } }) => Math.random() * 100 < percent)
}

function bindGuard(
  guard: GuardConfig,
  { callouts, secrets, host: policyHost }: GuardServices,
): Guard {
  switch (guard.type) {
    case 'regex':
      return new RegexGuard(guard)
    case 'webhook':
      return new WebhookGuard(guard, callouts)
    case 'service': {
      const { service, config, target } = guard
      if (target?.type === 'invalid') throw new Error(target.message)
      if (target !== undefined) {
        return new ServiceGuard(guard, toTarget(target, callouts))
      }
      const host = serviceOf(service).host(config)
      if (host === undefined) throw new Error(`${service} has no backend`)
      const steps = guard.policies.flatMap(
        ({ field, config }) =>
          simpleAppliers[field]?.bind(config as never, callouts, secrets, policyHost) ?? [],
      )
      return new ServiceGuard(guard, new HostConnection(host, steps, callouts))
    }
  }
}

/** Returns the text of a record, such as `request guard 0 (regex): Mask, 1 match of builtin Email`. */
export function checkText(
  { phase, guard, at, settings }: PlacedGuard,
  action: GuardAction,
  finding: string | undefined,
): string {
  const scope = settings.scope && `scope ${settings.scope.join('+')}`
  const names = [settings.name, guard.type, scope].filter((part) => part !== undefined).join(', ')
  const text = `${phase.toLowerCase()} guard ${at} (${names}): ${action}`
  return finding === undefined ? text : `${text}, ${finding}`
}
