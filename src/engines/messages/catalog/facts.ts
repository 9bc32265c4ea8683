/**
 * What is known of language models: what they accept, what they refuse, and what they cost. Translations depend
 * on these facts, never on the name of a model.
 */
import * as shape from '../../../ground/base/shape.ts'
import { priceFields } from '../cost/rates.ts'

/** Efforts of thinking, ascending. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

/** Parameters that some models refuse. `forced_tools` stands for a tool choice that demands a call. */
const parameters = [
  'temperature',
  'top_p',
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'stop',
  'parallel_tool_calls',
  'forced_tools',
] as const
export type Parameter = (typeof parameters)[number]

const thinking = shape.record({
  /**
   * How requests ask for thinking, best first: `adaptive` (the model decides, an effort guides it), `budget` (a number
   * of tokens), `effort` or `level` (a name alone), `nova` (the field of vendor F's own models).
   */
  forms: shape.list(shape.choice('adaptive', 'budget', 'effort', 'level', 'nova')),
  /** The efforts that the model accepts; all of its form if omitted. */
  efforts: shape.optional(shape.list(shape.choice(...efforts))),
  /** Limits of the budget, in tokens. */
  budget: shape.optional(shape.record({ min: shape.count, max: shape.count })),
  /** Whether the model thinks only if asked to (`off`), unless told not to (`on`), or always. */
  mode: shape.choice('off', 'on', 'always'),
})
export type ThinkingFacts = shape.Infer<typeof thinking>

const limits = shape.record({
  context: shape.optional(shape.count),
  output: shape.optional(shape.count),
})

const refused = shape.optional(shape.list(shape.choice(...parameters)))

/** The rules of a model. Unknown rules are omitted; then the defaults of the provider's format apply. */
const ruleFields = {
  /** False if the model does not think. */
  thinking: shape.optional(shape.either(thinking, shape.choice(false))),
  /** Parameters that the model refuses. */
  refuses: refused,
  /** Parameters that the model refuses if it thinks. */
  refusesThinking: refused,
  /** Whether the model refuses requests with both `temperature` and `top_p`. */
  oneSampling: shape.optional(shape.flag),
  maxTemperature: shape.optional(shape.amount),
  /** Numbers of tokens. */
  limits: shape.optional(limits),
  /** The member of chat completions with the limit of the output. */
  limitField: shape.optional(shape.choice('max_tokens', 'max_completion_tokens')),
  /** Whether requests may ask for short or long answers. */
  verbosity: shape.optional(shape.flag),
  /** Whether chat completions refuse an effort together with tools. */
  effortWithTools: shape.optional(shape.flag),
  /** Whether the model is served in chat completions; other models of vendor A only in its responses format. */
  chatCompletions: shape.optional(shape.flag),
  /** Whether the model supports schemas for responses. */
  structuredOutput: shape.optional(shape.flag),
  /** Whether the provider can enforce the schemas of tools. */
  strictTools: shape.optional(shape.flag),
  /** Lifetimes of cache points that a request may set; empty if it can set none. */
  cacheLifetimes: shape.optional(shape.list(shape.choice('5m', '1h'))),
  /** Whether messages of the system may stand between others. */
  systemInPlace: shape.optional(shape.flag),
  /** Whether calls in the history must be signed, and results of tools may have media. */
  signedCalls: shape.optional(shape.flag),
  /** Whether thinking of the history is sent back as `reasoning_content`. */
  reasoningHistory: shape.optional(shape.flag),
}
const rules = shape.record(ruleFields)
export type ModelRules = shape.Infer<typeof rules>

const medium = shape.choice('text', 'image', 'audio', 'video', 'pdf')
const date = shape.where(shape.text, 'a date such as 2026-11-28', (text) =>
  /^\d{4}-\d\d-\d\d$/.test(text),
)

/** The entry of one model of one provider. */
export const modelEntry = shape.record({
  ...priceFields,
  tags: shape.optional(shape.list(shape.text)),
  modalities: shape.optional(
    shape.record({ input: shape.list(medium), output: shape.list(medium) }),
  ),
  released: shape.optional(date),
  retires: shape.optional(date),
  ...ruleFields,
})
export type ModelEntry = shape.Infer<typeof modelEntry>

const patterns = shape.list(shape.text)

/** Models whose names and rules resemble each other. */
export const familyEntry = shape.record({
  name: shape.text,
  /** Names of models; `*` stands for any text. */
  match: patterns,
  /** Ids of providers whose models of unknown names belong to the family; `*` stands for any text. */
  home: shape.optional(shape.list(shape.text)),
  /** The member whose rules apply to members that are not known. */
  newest: shape.text,
  rules: shape.optional(rules),
  members: shape.list(
    shape.record({
      match: patterns,
      /** If set, the rules apply at these providers only, and do not make a model a known member. */
      providers: shape.optional(shape.list(shape.text)),
      rules,
    }),
  ),
})
export type Family = shape.Infer<typeof familyEntry>

/** The usual service; one that is slower and cheaper; one that is faster and dearer. */
export type Service = 'default' | 'flex' | 'priority'

/** Where the rules of a model come from: its own entry or member, the newest member of its family, or nowhere. */
type Basis = 'known' | 'newest' | 'unknown'

/** The facts about one model of one provider. */
export interface ModelFacts extends ModelRules {
  /** The model whose rules apply; empty if none is known. */
  readonly name: string
  readonly basis: Basis
  /** Services for which the model has prices of their own, such as `flex`; omitted if there are none. */
  readonly services?: readonly string[]
}
