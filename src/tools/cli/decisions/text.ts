/** Formats decision records as text. */
import type { RecordedDecision, RecordedStep } from '../../../past/decisions/record.ts'

export function requestLine({ method, host, path, query }: RecordedDecision['request']): string {
  return `${method} ${host}${path}${query === undefined ? '' : `?${query}`}`
}

/** The step that answered or failed, if one did. */
export const decidingStep = ({ steps }: RecordedDecision): RecordedStep | undefined =>
  steps.find(({ verdict }) => verdict === 'answer')

/** What was found: the detail of the answer, the error, or the notes of the step. */
export function findingText(decision: RecordedDecision, notes: readonly string[]): string {
  const { detail, error } = decision.response
  return detail ?? ([error, ...notes].filter((text) => text !== undefined).join('; ') || '')
}

/** The reason, and what decided. */
export function outcomeText(decision: RecordedDecision): string {
  const { response, attempts } = decision
  const step = decidingStep(decision)
  const by = step === undefined ? response.reason : `${response.reason} by ${step.step}`
  const found = findingText(decision, step?.notes ?? [])
  const retried = attempts.length === 0 ? '' : ` after ${attempts.length} failed attempts`
  return `${by}${found === '' ? '' : `: ${found}`}${retried}`
}

/** The rule and its route, such as `rule 0 (news) of HTTPRoute default/shop`. */
export function ruleText({ route, rule, ruleName }: RecordedDecision['route']): string | undefined {
  if (route === undefined) return undefined
  return rule === undefined
    ? route
    : `rule ${rule}${ruleName === undefined ? '' : ` (${ruleName})`} of ${route}`
}

/** The backend and its endpoint, if there are any. */
export function backendText({ backend, endpoint }: RecordedDecision['route']): string | undefined {
  if (backend === undefined) return undefined
  return endpoint === undefined ? backend : `${backend} at ${endpoint}`
}

/** The tool that was called, such as `tool delete of billing, refused by approval`. */
export function toolText({ details }: RecordedDecision): string | undefined {
  const tool = details['gen_ai.tool.name']
  if (tool === undefined) return undefined
  const target = details['mcp.target']
  const by = details['sluice.mcp.refused.by']
  const place = target === undefined ? '' : ` of ${target}`
  return `tool ${tool}${place}${by === undefined ? '' : `, refused by ${by}`}`
}
