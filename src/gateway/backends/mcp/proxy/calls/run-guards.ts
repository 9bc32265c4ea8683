/** Runs the guards of calls in order; each sees the texts as the previous one left them. */
import { MatchCounts } from '../../../../../engines/messages/mask/match-counts.ts'
import { maskTexts } from '../../../../../engines/messages/mask/parts-masker.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { Exchange } from '../../../../../ground/exchange/exchange.ts'
import { guardFailure } from '../../../ai/guards/guard-call.ts'
import type { Guard } from '../../../ai/policy/bind-guard.ts'
import type { McpGuardCheck } from '../exchange/guard-checks.ts'
import type { TextGroup } from './guarded-texts.ts'

/** `findings` are for the record of the decision, and contain no part of a text. */
interface GuardOutcome {
  /** The texts of all groups in order; undefined if no guard has changed any. */
  readonly texts: readonly string[] | undefined
  /** Why the message is refused, for the client. */
  readonly refusal: string | undefined
  readonly findings: readonly string[]
  readonly checks: readonly McpGuardCheck[]
}

type Direction = 'request' | 'response'

/** Never rejects: a guard that fails refuses the message. */
export async function runGuards(
  guards: readonly Guard[],
  groups: readonly TextGroup[],
  direction: Direction,
  exchange: Exchange,
): Promise<GuardOutcome> {
  const sizes = groups.map(({ length }) => length)
  const before = groups.flat().map(({ value }) => value)
  const findings: string[] = []
  const checks: McpGuardCheck[] = []
  const phase = direction === 'request' ? 'Request' : 'Response'
  let texts: readonly string[] = before
  for (const [at, guard] of guards.entries()) {
    const decision = await decide(guard, texts, sizes, direction, exchange)
    const { action, found, refusal } = decision
    checks.push({ phase, guard: guard.type, rule: at, action })
    if (action !== 'Allow') {
      const name = `${direction} guard ${at} (${guard.type})`
      findings.push(`${name}: ${action}${found ? `, ${found}` : ''}`)
    }
    if (refusal !== undefined) return { texts: undefined, refusal, findings, checks }
    texts = decision.texts
  }
  return { texts: texts === before ? undefined : texts, refusal: undefined, findings, checks }
}

interface Decision {
  readonly action: McpGuardCheck['action']
  readonly texts: readonly string[]
  /** What was found, or why the guard has failed. */
  readonly found: string | undefined
  /** Undefined if the message may pass. */
  readonly refusal: string | undefined
}

/** Never rejects because a guard fails. */
async function decide(
  guard: Guard,
  texts: readonly string[],
  sizes: readonly number[],
  direction: Direction,
  exchange: Exchange,
): Promise<Decision> {
  try {
    const outcome = await run(guard, texts, sizes, direction, exchange)
    const { found, isRefused } = outcome
    if (!isRefused) {
      const action = outcome.texts === texts ? 'Allow' : 'Mask'
      return { action, texts: outcome.texts, found, refusal: undefined }
    }
    const refusal = outcome.message ?? guard.refusal.message
    return { action: 'Reject', texts, found, refusal }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    const refusal = `The ${direction} could not be checked`
    return { action: 'Fail', texts, found: thrown.message, refusal }
  }
}

interface One {
  readonly texts: readonly string[]
  readonly isRefused: boolean
  readonly found?: string | undefined
  /** The refusal of a webhook. */
  readonly message?: string | undefined
}

async function run(
  guard: Guard,
  texts: readonly string[],
  sizes: readonly number[],
  direction: Direction,
  exchange: Exchange,
): Promise<One> {
  if (guard.type === 'regex') {
    const masked = maskAll(guard, texts, sizes)
    return { ...masked, isRefused: guard.action === 'Reject' && masked.found !== undefined }
  }
  const roles = texts.map((content) => ({ role: 'tool', content }))
  if (guard.type === 'moderation') {
    return { texts, isRefused: await guard.isFlagged(roles, exchange) }
  }
  const action = await guard.ask(direction, roles, exchange.request.headers)
  if (action.type === 'pass') return { texts, isRefused: false }
  if (action.type === 'reject') return { texts, isRefused: true, message: action.body }
  if (action.texts.length !== texts.length) {
    throw guardFailure('the mask does not fit the message')
  }
  return { texts: action.texts.map(({ content }) => content), isRefused: false }
}

type RegexGuard = Extract<Guard, { readonly type: 'regex' }>

function maskAll({ mask }: RegexGuard, texts: readonly string[], sizes: readonly number[]) {
  const counts = new MatchCounts()
  let at = 0
  const masked = sizes.flatMap((size) => {
    const group = texts.slice(at, at + size)
    at += size
    return maskTexts(mask, group, counts.add).texts
  })
  const found = counts.textOf(mask)
  return { texts: found === undefined ? texts : masked, found }
}

/**
 * Masks texts that the gateway must pass on at once, with the guards that need no service. Returns undefined if nothing
 * has changed.
 */
export function maskNow(
  guards: readonly Guard[],
  groups: readonly TextGroup[],
): readonly string[] | undefined {
  const sizes = groups.map(({ length }) => length)
  const before = groups.flat().map(({ value }) => value)
  let texts: readonly string[] = before
  for (const guard of guards) {
    if (guard.type === 'regex') texts = maskAll(guard, texts, sizes).texts
  }
  return texts === before ? undefined : texts
}
