/** Runs the guards of calls in order; each sees the texts as the previous one left them. */
import { MatchCounts } from '../../../../../engines/messages/mask/match-counts.ts'
import { maskTexts } from '../../../../../engines/messages/mask/parts-masker.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { Exchange } from '../../../../../ground/exchange/exchange.ts'
import { guardFailure } from '../../../ai/guards/guard-call.ts'
import type { Guard } from '../../../ai/policy/bind-guard.ts'
import type { TextGroup } from './guarded-texts.ts'

/** `findings` are for the record of the decision, and contain no part of a text. */
interface GuardOutcome {
  /** The texts of all groups in order; undefined if no guard has changed any. */
  readonly texts: readonly string[] | undefined
  /** Why the message is refused, for the client. */
  readonly refusal: string | undefined
  readonly findings: readonly string[]
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
  let texts: readonly string[] = before
  for (const [at, guard] of guards.entries()) {
    const name = `${direction} guard ${at} (${guard.type})`
    try {
      const outcome = await run(guard, texts, sizes, direction, exchange)
      const action = outcome.isRefused ? 'Reject' : 'Mask'
      const isHit = outcome.isRefused || outcome.texts !== texts
      if (isHit) findings.push(`${name}: ${action}${outcome.found ? `, ${outcome.found}` : ''}`)
      if (outcome.isRefused) {
        return { texts: undefined, refusal: outcome.message ?? guard.refusal.message, findings }
      }
      texts = outcome.texts
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      findings.push(`${name}: Fail, ${thrown.message}`)
      return { texts: undefined, refusal: `The ${direction} could not be checked`, findings }
    }
  }
  return { texts: texts === before ? undefined : texts, refusal: undefined, findings }
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
