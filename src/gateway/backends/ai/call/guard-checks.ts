/** Results of guards, for metrics and for the record of the decision. They contain no part of a text. */
import type { GuardFinding } from '../../../../engines/messages/mask/regex-chain.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { GuardAction } from '../guards/guard-call.ts'
import { checkText, isAudit, type PlacedGuard } from '../policy/bind-guard.ts'
import type { ModelCall } from './model-call.ts'

/** Why a guard decided as it did. */
interface Finding {
  readonly detail?: string | undefined
  readonly matches?: readonly string[] | undefined
}

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

/** Records what guards have found in a streamed response. Called once the exchange is over. */
export function noteMatches({ policy, stream, audits, checks, context }: ModelCall): void {
  if (stream === undefined || policy === undefined) return
  const { findings } = stream
  const acting = policy.responseGuards.filter((placed) => !isAudit(placed))
  const found: (readonly [PlacedGuard, GuardFinding | undefined])[] = [
    ...(findings.length === 0 ? [] : acting.map((placed, at) => [placed, findings[at]] as const)),
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
}
