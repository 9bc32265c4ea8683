/** Google Model Armor: sanitizeUserPrompt and sanitizeModelResponse. */
import { field, isObject, objectAt, stringAt } from '../../../../../engines/messages/json/json.ts'
import { guardFailure } from '../guard-call.ts'
import type { ModelArmorConfig } from './config.ts'
import { type GuardService, passes, type Verdict } from './service.ts'
import { piecesOf } from './split.ts'

/** Some filters read at most 10,000 tokens, and a token may be a single character. */
const limits = { length: 10_000, parts: 1 }

export const modelArmor: GuardService<ModelArmorConfig> = {
  masks: () => true,
  host: ({ location }) => `modelarmor.${location}.rep.googleapis.com`,
  split: (texts) => piecesOf(texts, limits),
  call({ parts }, direction, { projectId, location, templateId }) {
    const names = [projectId, location, templateId].map(encodeURIComponent)
    const template = `/v1/projects/${names[0]}/locations/${names[1]}/templates/${names[2]}`
    const text = parts[0]?.content ?? ''
    return direction === 'request'
      ? { path: `${template}:sanitizeUserPrompt`, body: { userPromptData: { text } } }
      : { path: `${template}:sanitizeModelResponse`, body: { modelResponseData: { text } } }
  },
  verdict(answer): Verdict {
    const result = objectAt(answer, 'sanitizationResult')
    const state = stringAt(result, 'filterMatchState')
    const filters = filtersOf(field(result, 'filterResults'))
    const isMatch = state === 'MATCH_FOUND'
    if (!isMatch && state !== 'NO_MATCH_FOUND') {
      throw guardFailure('Model Armor gave no known match state')
    }
    const matched = filters.filter((filter) => filter.isMatch)
    const masked = matched.find(({ name }) => name === 'sdp')?.text
    const isMask = matched.length === 1 && masked !== undefined
    const isWhole =
      stringAt(result, 'invocationResult') === 'SUCCESS' && !filters.some((one) => one.isSkipped)
    // A filter that did not run might have matched.
    if ((!isMatch || isMask) && !isWhole) throw guardFailure('filters of Model Armor did not run')
    if (!isMatch) return passes
    const matches = matched.map(({ name }) => name)
    return isMask ? { rejects: false, matches, masked: [masked] } : { rejects: true, matches }
  },
}

interface Filter {
  readonly name: string
  readonly isMatch: boolean
  readonly isSkipped: boolean
  /** The text after the removal of sensitive data. */
  readonly text: string | undefined
}

/** Reads a map or a list of filters. */
function filtersOf(results: unknown): Filter[] {
  const entries = Array.isArray(results) ? results : isObject(results) ? Object.values(results) : []
  return entries.filter(isObject).flatMap((entry) =>
    Object.keys(entry).map((member): Filter => {
      // Sensitive data has the results of two steps.
      const found = objectAt(entry, member) ?? {}
      const steps = [found, objectAt(found, 'inspectResult'), objectAt(found, 'deidentifyResult')]
      const has = (name: string, value: string) => steps.some((step) => step?.[name] === value)
      return {
        // `csamFilterFilterResult` has the word twice.
        name: member.replace(/(?:Filter)+Result$/, ''),
        isMatch: has('matchState', 'MATCH_FOUND'),
        isSkipped: has('executionState', 'EXECUTION_SKIPPED'),
        text: stringAt(objectAt(objectAt(found, 'deidentifyResult'), 'data'), 'text'),
      }
    }),
  )
}
