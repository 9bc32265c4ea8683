/** Runs the guards of calls in order; each sees the texts as the previous one left them. */
import { MatchCounts } from '../../../../../engines/messages/mask/match-counts.ts'
import { maskTexts } from '../../../../../engines/messages/mask/parts-masker.ts'
import type { RegexGuard } from '../../../../../engines/messages/mask/regex-guard.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { Exchange } from '../../../../../ground/exchange/exchange.ts'
import { askGuard, type Decision, type Direction } from '../../../ai/guards/ask-guard.ts'
import { checkText, isRegex, type PlacedGuard, sampled } from '../../../ai/policy/bind-guard.ts'
import type { McpPlace } from '../../../ai/policy/scope.ts'
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

/** Never rejects: a guard that fails refuses the message, unless its policy says otherwise. */
export async function runGuards(
  guards: readonly PlacedGuard[],
  groups: readonly TextGroup[],
  direction: Direction,
  exchange: Exchange,
  place: McpPlace,
): Promise<GuardOutcome> {
  const sizes = groups.map(({ length }) => length)
  const before = groups.flat().map(({ value }) => value)
  const findings: string[] = []
  const checks: McpGuardCheck[] = []
  let texts: readonly string[] = before
  for (const placed of sampled(inScope(guards, place))) {
    const { phase, guard, at: rule, settings } = placed
    const note = (action: McpGuardCheck['action'], detail: string | undefined) => {
      checks.push({ phase, guard: guard.type, rule, action })
      if (action !== 'Allow') findings.push(checkText(placed, action, detail))
    }
    try {
      const { action, given, masked, detail } = await run(placed, texts, sizes, direction, exchange)
      note(action, detail)
      if (action === 'Reject') {
        const refusal = given?.body ?? settings.refusal.message
        return { texts: undefined, refusal, findings, checks }
      }
      texts = masked ?? texts
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      note('Fail', thrown.message)
      const refusal = `The ${direction} could not be checked`
      return { texts: undefined, refusal, findings, checks }
    }
  }
  return { texts: texts === before ? undefined : texts, refusal: undefined, findings, checks }
}

/** Returns the guards that read a place of the messages. Only a scope that names `Definitions` contains them. */
export const inScope = (guards: readonly PlacedGuard[], place: McpPlace): readonly PlacedGuard[] =>
  guards.filter(({ settings: { scope } }) => scope?.includes(place) ?? place !== 'Definitions')

async function run(
  { guard, settings }: PlacedGuard,
  texts: readonly string[],
  sizes: readonly number[],
  direction: Direction,
  exchange: Exchange,
): Promise<Decision<readonly string[]>> {
  if (!isRegex(guard)) {
    const roles = texts.map((content) => ({ role: 'tool', content }))
    const { headers } = exchange.request
    return askGuard(guard, settings, { direction, texts: roles, exchange, headers }, (masked) =>
      masked.length === texts.length ? masked.map(({ content }) => content) : undefined,
    )
  }
  const { texts: masked, found: detail } = maskAll(guard, texts, sizes)
  if (detail === undefined) return { action: 'Allow' }
  if (settings.isAudit === true) return { action: 'Audit', detail }
  return guard.action === 'Reject'
    ? { action: 'Reject', detail }
    : { action: 'Mask', masked, detail }
}

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
  guards: readonly PlacedGuard[],
  groups: readonly TextGroup[],
): readonly string[] | undefined {
  const sizes = groups.map(({ length }) => length)
  const before = groups.flat().map(({ value }) => value)
  let texts: readonly string[] = before
  for (const { guard, settings } of inScope(guards, 'Results')) {
    if (isRegex(guard) && settings.isAudit !== true) texts = maskAll(guard, texts, sizes).texts
  }
  return texts === before ? undefined : texts
}
