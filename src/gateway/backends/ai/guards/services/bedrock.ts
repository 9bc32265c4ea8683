/** Bedrock Guardrails: ApplyGuardrail, for any provider. */
import {
  field,
  isObject,
  listAt,
  objectAt,
  stringAt,
} from '../../../../../engines/messages/json/json.ts'
import { guardFailure } from '../guard-call.ts'
import type { BedrockConfig } from './config.ts'
import { type GuardService, passes, type Verdict } from './service.ts'
import { piecesOf } from './split.ts'

/** A call may have 25 text units of 1,000 characters. */
const limits = { length: 25_000, parts: 64 }

/** Lists of findings by their policies, and the field with the name of what was found; none if that is a text. */
const findings = [
  ['topicPolicy', 'topics', 'name'],
  ['contentPolicy', 'filters', 'type'],
  ['wordPolicy', 'managedWordLists', 'type'],
  ['wordPolicy', 'customWords', undefined],
  ['sensitiveInformationPolicy', 'piiEntities', 'type'],
  ['sensitiveInformationPolicy', 'regexes', 'name'],
  ['contextualGroundingPolicy', 'filters', 'type'],
] as const

export const bedrock: GuardService<BedrockConfig> = {
  masks: () => true,
  host: ({ region }) => `bedrock-runtime.${region}.amazonaws.com`,
  split: (texts) => piecesOf(texts, limits),
  call: ({ parts }, direction, { identifier, version }) => ({
    path: `/guardrail/${encodeURIComponent(identifier)}/version/${encodeURIComponent(version)}/apply`,
    body: {
      source: direction === 'request' ? 'INPUT' : 'OUTPUT',
      content: parts.map(({ content }) => ({ text: { text: content } })),
    },
  }),
  verdict(answer, { parts }): Verdict {
    const action = stringAt(answer, 'action')
    if (action === 'NONE') return passes
    if (action !== 'GUARDRAIL_INTERVENED') throw guardFailure('the guardrail gave no known action')
    const acting = listAt(answer, 'assessments').flatMap(actingEntries)
    const matches = acting.map(({ name }) => name)
    // It is a refusal unless everything that was found is masked.
    const isMask = acting.length > 0 && acting.every((entry) => entry.action === 'ANONYMIZED')
    if (!isMask) return { rejects: true, matches }
    const masked = listAt(answer, 'outputs').map((output) => stringAt(output, 'text'))
    const texts = masked.filter((text) => text !== undefined)
    if (texts.length !== parts.length) {
      throw guardFailure('the guardrail gave another number of texts than it got')
    }
    return { rejects: false, matches, masked: texts }
  },
}

interface ActingEntry {
  readonly name: string
  readonly action: string
}

/** Returns what a guardrail has found and acts on. */
function actingEntries(assessment: unknown): ActingEntry[] {
  const found = findings.flatMap(([policy, list, name]) =>
    listAt(objectAt(assessment, policy), list).flatMap((entry): ActingEntry[] => {
      const action = stringAt(entry, 'action') ?? 'NONE'
      const shown = name === undefined ? list : (stringAt(entry, name) ?? list)
      return action === 'NONE' ? [] : [{ name: shown, action }]
    }),
  )
  const reasoning = listAt(field(assessment, 'automatedReasoningPolicy'), 'findings')
  const isUnproven = reasoning.some((entry) => isObject(entry) && !('valid' in entry))
  return isUnproven ? [...found, { name: 'automatedReasoningPolicy', action: 'BLOCKED' }] : found
}
