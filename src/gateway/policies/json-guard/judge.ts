/** Runs guards on the texts of a body, in order; each sees the texts as the previous one left them. */
import type { PathText } from '../../../engines/json/path-texts.ts'
import { MatchCounts } from '../../../engines/messages/mask/match-counts.ts'
import type { RegexGuard } from '../../../engines/messages/mask/regex-guard.ts'
import type { Exchange, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { askGuard, type Decision } from '../../backends/ai/guards/ask-guard.ts'
import {
  checkText,
  concurrentGroups,
  isRegex,
  type PlacedGuard,
  sampled,
} from '../../backends/ai/policy/bind-guard.ts'
import { guardRefusal } from '../../backends/ai/policy/guard-refusal.ts'

export const stepName = 'traffic.jsonGuard'

/** The texts of a body with their current values. */
interface JudgedTexts {
  readonly texts: readonly PathText[]
  readonly values: string[]
}

interface Context {
  readonly exchange: Exchange
  readonly direction: 'request' | 'response'
}

/**
 * Masks the values, or returns the response of a guard that refuses them.
 * @throws GatewayError prompt_guard_failed
 */
export async function judge(
  guards: readonly PlacedGuard[],
  judged: JudgedTexts,
  context: Context,
): Promise<RespondVerdict | undefined> {
  const { exchange } = context
  for (const group of concurrentGroups(sampled(guards))) {
    const results = await Promise.allSettled(group.map((placed) => run(placed, judged, context)))
    for (const [at, placed] of group.entries()) {
      const result = results[at]
      if (result?.status !== 'fulfilled') {
        addNote(exchange, stepName, checkText(placed, 'Fail', undefined))
        throw result?.reason
      }
      const { action, given, masked, detail } = result.value
      if (action === 'Allow') continue
      const text = checkText(placed, action, detail)
      if (action === 'Reject') return { ...guardRefusal(placed, given), detail: text }
      addNote(exchange, stepName, text)
      if (masked !== undefined) put(placed, judged, masked)
    }
  }
  return undefined
}

/** Returns the indexes of the texts that a guard reads. */
const indexesOf = ({ at }: PlacedGuard, { texts }: JudgedTexts): number[] =>
  texts.flatMap(({ lists }, index) => ((lists & (1 << at)) === 0 ? [] : [index]))

function put(placed: PlacedGuard, judged: JudgedTexts, masked: readonly string[]): void {
  for (const [at, index] of indexesOf(placed, judged).entries()) {
    judged.values[index] = masked[at] ?? ''
  }
}

async function run(
  placed: PlacedGuard,
  judged: JudgedTexts,
  { exchange, direction }: Context,
): Promise<Decision<readonly string[]>> {
  const { guard, settings } = placed
  const texts = indexesOf(placed, judged).map((index) => judged.values[index] ?? '')
  if (texts.length === 0) return { action: 'Allow' }
  if (isRegex(guard)) {
    const counts = new MatchCounts()
    const masked = maskEach(guard, texts, counts)
    return decisionOf(placed, masked, counts.textOf(guard.mask))
  }
  const role = direction === 'request' ? 'user' : 'assistant'
  const roles = texts.map((content) => ({ role, content }))
  const { headers } =
    direction === 'request' ? exchange.request : (exchange.response ?? exchange.request)
  return askGuard(guard, settings, { direction, texts: roles, exchange, headers }, (masked) =>
    masked.length === texts.length ? masked.map(({ content }) => content) : undefined,
  )
}

/** Masks each text separately. A text without a match stays as it is. */
export function maskEach(
  { mask }: RegexGuard,
  texts: readonly string[],
  counts: MatchCounts,
): readonly string[] {
  return texts.map((text) => {
    const { text: masked, count } = mask.apply(text, (rule) => counts.add(mask, rule))
    return count === 0 ? text : masked
  })
}

function decisionOf(
  { guard, settings }: PlacedGuard,
  masked: readonly string[],
  detail: string | undefined,
): Decision<readonly string[]> {
  if (detail === undefined) return { action: 'Allow' }
  if (settings.isAudit === true) return { action: 'Audit', detail }
  return isRegex(guard) && guard.action === 'Reject'
    ? { action: 'Reject', detail }
    : { action: 'Mask', masked, detail }
}
