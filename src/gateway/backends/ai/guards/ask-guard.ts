/** Guards that ask a service, and what becomes of a message after the answer. */
import type { RoleText } from '../../../../engines/messages/mask/slot.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { Exchange, HeaderFields } from '../../../../ground/exchange/exchange.ts'
import type { GuardSettings } from '../policy/config.ts'
import { type GuardAction, guardFailure } from './guard-call.ts'

export type Direction = 'request' | 'response'

/** The texts of a message, and the request that they belong to. */
export interface Question {
  readonly direction: Direction
  readonly texts: readonly RoleText[]
  readonly exchange: Exchange
  /** Headers of the request or response. */
  readonly headers: Pick<HeaderFields, 'getAll'>
}

/** The answer of a service. `matches` has the names of the rules that matched, and no part of a text. */
export type Answer =
  | { readonly type: 'pass' }
  /** Fields that are omitted are taken from the guard's `response`. */
  | {
      readonly type: 'reject'
      readonly status?: number | undefined
      readonly body?: string | undefined
      readonly matches?: readonly string[]
    }
  /** One text for each text of the question. */
  | {
      readonly type: 'mask'
      readonly texts: readonly RoleText[]
      readonly matches?: readonly string[]
    }

/** A guard that asks a service. */
export interface AskingGuard {
  /** Type of the guard, for metrics. */
  readonly type: string
  /** Whether the guard may change texts. */
  readonly masks: boolean
  /** Whether the guard checks streams in windows. */
  readonly readsWindows: boolean
  /** @throws GatewayError prompt_guard_failed */
  ask(question: Question): Promise<Answer>
  dispose(): void
}

/** What a guard decided. */
export interface Decision<Masked> {
  readonly action: Exclude<GuardAction, 'Fail'>
  /** Set for `Mask`. */
  readonly masked?: Masked
  /** Set for `Reject`: what the service wants the client to get. */
  readonly given?: { readonly status?: number | undefined; readonly body?: string | undefined }
  readonly matches?: readonly string[] | undefined
  /** For the record; contains no part of a text. */
  readonly detail?: string | undefined
}

/**
 * Asks a guard about a message. `replace` puts masked texts into the message; it returns undefined if they do not fit.
 * @throws GatewayError prompt_guard_failed if the guard fails, unless the message must pass then
 */
export async function askGuard<Masked>(
  guard: AskingGuard,
  { isAudit, failsOpen }: GuardSettings,
  question: Question,
  replace: (texts: readonly RoleText[]) => Masked | undefined,
): Promise<Decision<Masked>> {
  try {
    const answer = await guard.ask(question)
    if (answer.type === 'pass') return { action: 'Allow' }
    const { matches } = answer
    const would = isAudit === true ? `would ${answer.type}` : undefined
    const found = { matches, detail: detailOf(would, matches) }
    if (isAudit === true) return { action: 'Audit', ...found }
    if (answer.type === 'reject') return { action: 'Reject', given: answer, ...found }
    const masked = replace(answer.texts)
    if (masked === undefined) throw guardFailure('the mask does not fit the message')
    return { action: 'Mask', masked, ...found }
  } catch (error) {
    const passes = isAudit === true || failsOpen === true
    if (!passes || !(error instanceof GatewayError)) throw error
    return { action: 'FailOpen', detail: error.message }
  }
}

/** Says what a guard would have done, and why; undefined if neither is known. */
function detailOf(would: string | undefined, matches: readonly string[] = []): string | undefined {
  const reason = matches.length === 0 ? undefined : `matched ${matches.join(', ')}`
  const known = [would, reason].filter((part) => part !== undefined)
  return known.length === 0 ? undefined : known.join(', ')
}
