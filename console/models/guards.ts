/** The prompt guards of the configuration, and what they found in recorded requests. */

import type { BackendAiConfig, GuardConfig } from '../../src/gateway/backends/ai/policy/config.ts'
import { objectKey, objectText, parseObjectKey } from '../../src/ground/model/names.ts'
import type { PolicyResource } from '../../src/ground/model/resources.ts'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import type { Moment } from '../log/loaded-log.ts'

/** The guards of one policy for messages in one direction, in the order in which they run. */
export interface GuardList {
  /** Key of the object with the policy, and what it is attached to. */
  readonly policy: string
  readonly target: string
  readonly phase: 'Request' | 'Response'
  readonly guards: readonly GuardConfig[]
}

export function guardsModel(moment: Moment): GuardList[] {
  return [...moment.resources.entries()].flatMap(([, { resource }]) => {
    const isAi = resource.type === 'policy' && resource.section === 'backend'
    if (!isAi || resource.field !== 'ai') return []
    const { requestGuards, responseGuards } = JSON.parse(resource.config) as BackendAiConfig
    const common = placeOf(resource)
    return [
      { ...common, phase: 'Request' as const, guards: requestGuards },
      { ...common, phase: 'Response' as const, guards: responseGuards },
    ].filter(({ guards }) => guards.length > 0)
  })
}

function placeOf({ target, policy }: PolicyResource): Pick<GuardList, 'policy' | 'target'> {
  const own = objectKey(target)
  const section = target.section === undefined ? '' : `, ${target.section}`
  return {
    policy: target.inline === true ? own : objectKey({ kind: 'GatewayPolicy', ...policy }),
    target: `${objectText(parseObjectKey(own))}${section}`,
  }
}

/** What a note of the step `backend.ai` says, such as `request guard 0 (regex): Mask, builtin Email ×2`. */
const noted =
  /^(request|response) guard (\d+) \((?:[^)]*, )?(\w+)(?:, scope [\w+]+)?\): (\w+)(?:, (.*))?$/s

/** A row for each policy, guard, action and finding, with the number of recorded requests. */
export function guardFindings(
  records: readonly Partial<RecordedDecision>[],
): readonly (readonly (string | number)[])[] {
  const counts = new Map<string, number>()
  for (const { steps = [] } of records) {
    for (const { step, from, notes } of steps) {
      if (step !== 'backend.ai') continue
      for (const note of notes) {
        const [, phase, at, type, action, finding = ''] = noted.exec(note) ?? []
        if (phase === undefined) continue
        const policies = from.map(({ object }) => object).join(', ')
        const key = JSON.stringify([policies, `${phase} guard ${at} (${type})`, action, finding])
        counts.set(key, (counts.get(key) ?? 0) + 1)
      }
    }
  }
  return [...counts]
    .map(([key, count]) => [...(JSON.parse(key) as string[]), count])
    .sort((a, b) => Number(b.at(-1)) - Number(a.at(-1)))
}
