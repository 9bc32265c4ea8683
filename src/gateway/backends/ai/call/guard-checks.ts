/** Results of guards, for metrics and for the record of the decision. They contain no part of a text. */
import type { GuardFinding } from '../../../../engines/messages/mask/regex-chain.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import { type GuardAction, maxRules } from '../guards/guard-call.ts'
import { checkText, isAudit, isRegex, type PlacedGuard } from '../policy/bind-guard.ts'
import type { ModelCall } from './model-call.ts'

/** Why a guard decided as it did. */
interface Finding {
  readonly detail?: string | undefined
  readonly matches?: readonly string[] | undefined
}

/** See `recordCheck`. */
export type Recorder = (
  call: ModelCall,
  placed: PlacedGuard,
  action: GuardAction,
  found?: Finding,
) => string | undefined

/** Records what a guard decided. Returns the text of the record. */
export function recordCheck(
  call: ModelCall,
  placed: PlacedGuard,
  action: GuardAction,
  found: Finding = {},
): string | undefined {
  const { phase, guard, at } = placed
  const { matches } = found
  call.checks.push({ phase, guard: guard.type, action, step: call.policy, at, matches })
  if (action === 'Allow' || call.context.over) return undefined
  const text = checkText(placed, action, found.detail)
  const source = { step: call.policy, isResponse: action === 'Reject' }
  addNote(call.context.exchange, 'backend.ai', text, source)
  return text
}

/** Actions, the most severe first. If those for the windows of a stream differ, the most severe one is recorded. */
const bySeverity: readonly GuardAction[] = ['Fail', 'Reject', 'FailOpen', 'Mask', 'Audit', 'Allow']

/** Collects the decisions about the windows of a stream, as one result for each guard. */
export class WindowChecks {
  readonly #results = new Map<PlacedGuard, { action: GuardAction; found: Finding }>()

  constructor(guards: readonly PlacedGuard[]) {
    for (const placed of guards) this.#results.set(placed, { action: 'Allow', found: {} })
  }

  readonly add: Recorder = (_, placed, action, found = {}) => {
    const before = this.#results.get(placed)
    const names = [...(before?.found.matches ?? []), ...(found.matches ?? [])]
    const matches = names.length === 0 ? undefined : [...new Set(names)].slice(0, maxRules)
    const isMoreSevere = bySeverity.indexOf(action) < bySeverity.indexOf(before?.action ?? 'Allow')
    const main = isMoreSevere ? { action, detail: found.detail } : before
    const detail = isMoreSevere ? found.detail : before?.found.detail
    this.#results.set(placed, { action: main?.action ?? action, found: { detail, matches } })
    return action === 'Allow' ? undefined : checkText(placed, action, found.detail)
  }

  /** Records the results. Called once the exchange is over. */
  note({ policy, checks, context }: ModelCall): void {
    for (const [placed, { action, found }] of this.#results) {
      const { phase, guard, at } = placed
      const { matches } = found
      // Windows overlap, so the numbers of matches in them are not those of the stream.
      const hasNumbers = isRegex(guard) && matches !== undefined
      const detail = hasNumbers ? `matched ${matches.join(', ')}` : found.detail
      checks.push({ phase, guard: guard.type, action, step: policy, at, matches })
      if (action === 'Allow') continue
      const source = { step: policy, isResponse: action === 'Reject' }
      addNote(context.exchange, 'backend.ai', checkText(placed, action, detail), source)
    }
  }
}

/** Records what guards have found in a streamed response. Called once the exchange is over. */
export function noteMatches(call: ModelCall): void {
  const { policy, stream, audits, checks, context } = call
  if (stream === undefined || policy === undefined) return
  const { findings } = stream
  const acting = policy.responseGuards.filter((placed) => !isAudit(placed))
  const found: (readonly [PlacedGuard, GuardFinding | undefined])[] = [
    ...acting.slice(0, findings.length).map((placed, at) => [placed, findings[at]] as const),
    ...(audits?.findings ?? []),
  ]
  for (const [placed, finding] of found) {
    const { phase, guard, at } = placed
    const hit = isAudit(placed) ? 'Audit' : 'Mask'
    const action = finding?.isUnread === true ? 'FailOpen' : finding === undefined ? 'Allow' : hit
    const matches = finding?.names
    checks.push({ phase, guard: guard.type, action, step: policy, at, matches })
    if (finding?.text === undefined) continue
    const text = checkText(placed, action, finding.text)
    addNote(context.exchange, 'backend.ai', text, { step: policy })
  }
  call.windows?.note(call)
}
