/** Translates how clients ask for thinking to what a model accepts. */
import { type Effort, efforts, type ModelFacts, type Parameter } from '../catalog/facts.ts'
import type { Chat, Reasoning } from '../chat.ts'
import { stringAt } from '../json/json.ts'

/** Thinking budget in tokens for each effort. */
const budgets: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16_384,
}

/** Smallest budgets of the efforts that a budget stands for; clients set larger budgets than `budgets` has. */
const smallestBudgets = [
  ['high', 10_000],
  ['medium', 3_000],
  ['low', 0],
] as const

const displays = new Map([
  ['summarized', true],
  ['omitted', false],
])

/** Reads whether `thinking` of vendor C asks for thoughts in the response; undefined if it does not say so. */
export const showsThinkingIn = (thinking: unknown): boolean | undefined =>
  displays.get(stringAt(thinking, 'display') ?? '')

export const isEffort = (value: unknown): value is Effort =>
  typeof value === 'string' && Object.hasOwn(budgets, value)

/** Effort of requests that ask for thinking without one. */
const usualEffort = 'high'

/** Returns the thinking budget that a request asks for; undefined if it asks for no thinking. */
export function budgetOf(reasoning: Reasoning): number | undefined {
  switch (reasoning.type) {
    case 'budget':
      return reasoning.tokens
    case 'off':
      return undefined
    default:
      return budgets[reasoning.effort ?? usualEffort] || undefined
  }
}

/** Returns the effort that a request asks for; `none` if it asks for no thinking. */
export function effortOf(reasoning: Reasoning): Effort {
  switch (reasoning.type) {
    case 'budget':
      return smallestBudgets.find(([, tokens]) => reasoning.tokens >= tokens)?.[0] ?? 'low'
    case 'off':
      return 'none'
    default:
      return reasoning.effort ?? usualEffort
  }
}

/** Returns the highest accepted effort that is not above the wanted one, or else the lowest accepted one. */
export function nearestEffort(wanted: Effort, accepted: readonly Effort[] = efforts): Effort {
  const most = efforts.indexOf(wanted)
  const below = accepted.filter((one) => efforts.indexOf(one) <= most)
  return below.at(-1) ?? accepted[0] ?? wanted
}

/** Returns whether the model will think. */
function thinks({ reasoning }: Chat, { thinking }: ModelFacts): boolean {
  if (thinking === undefined || thinking === false) return false
  if (thinking.mode === 'always') return true
  if (reasoning === undefined || (reasoning.type === 'effort' && reasoning.isGuide)) {
    return thinking.mode === 'on'
  }
  return effortOf(reasoning) !== 'none'
}

/** The members of the common form that parameters of models stand for. */
const membersOf: Readonly<Record<Exclude<Parameter, 'forced_tools'>, keyof Chat>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  stop: 'stop',
  parallel_tool_calls: 'parallelTools',
}

/** Returns the conversation without parameters that the model refuses, and with others in its range. */
export function settleParameters(chat: Chat, facts: ModelFacts): Chat {
  const { refuses = [], refusesThinking = [], oneSampling, maxTemperature } = facts
  const settled: { -readonly [Name in keyof Chat]: Chat[Name] } = { ...chat }
  const refused = thinks(chat, facts) ? [...refuses, ...refusesThinking] : refuses
  for (const name of refused) if (name !== 'forced_tools') delete settled[membersOf[name]]
  if (oneSampling === true && settled.temperature !== undefined) delete settled.topP
  if (maxTemperature !== undefined && settled.temperature !== undefined) {
    settled.temperature = Math.min(settled.temperature, maxTemperature)
  }
  return settled
}
