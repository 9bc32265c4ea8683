/** What budgets are charged for a request to a model, and what is reserved for it before it is sent. */
import { inputWithCache, type Usage } from '../../../../engines/messages/chat.ts'
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { answersAsked, outputLimit } from '../../../../engines/messages/request/parameters.ts'
import { budgetsOf, type Spend } from '../../../../ground/exchange/budgets.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { costOfCall, type PricedCall } from './call-cost.ts'
import type { EmbeddingUse } from './embed.ts'
import type { ModelCall } from './model-call.ts'

/** Bytes of a request per token. Texts have about four, and everything else has more. */
const bytesPerToken = 3
/** Output tokens that are reserved for requests without a limit, until responses of the model are known. */
const firstOutput = 1_000
/** Weight of the latest response in the average output of a model. */
const weight = 0.1
const maxModels = 1_000

/** Average output tokens of each model in this thread. */
const averages = new Map<string, number>()

/** The spend of a usage. The cost is computed once, and only if a budget counts money. */
export class UsageSpend implements Spend {
  readonly tokens: bigint
  readonly #call: PricedCall
  readonly #usage: Usage
  #cost: Cost | undefined

  constructor(call: PricedCall, usage: Usage) {
    this.#call = call
    this.#usage = usage
    this.tokens = integerOf(inputWithCache(usage) + usage.output)
  }

  usd(): bigint | undefined {
    this.#cost ??= costOfCall(this.#call, this.#usage)
    const { status, total } = this.#cost
    return status === 'exact' ? total : undefined
  }
}

/** The spend of a request, if it was billed, and of the embedding with which it was compared with similar ones. */
class ComparedSpend implements Spend {
  readonly tokens: bigint
  readonly #own: UsageSpend | undefined
  readonly #cost: Cost

  constructor(own: UsageSpend | undefined, { usage, cost }: EmbeddingUse) {
    this.tokens = (own?.tokens ?? 0n) + integerOf(usage.input)
    this.#own = own
    this.#cost = cost
  }

  usd(): bigint | undefined {
    const own = this.#own === undefined ? 0n : this.#own.usd()
    return own === undefined || this.#cost.status !== 'exact' ? own : own + this.#cost.total
  }
}

/** Vendors may report anything. What is no number counts as nothing, and what is too large as the largest number. */
const integerOf = (value: number): bigint =>
  Number.isNaN(value)
    ? 0n
    : BigInt(Math.min(Math.max(0, Math.ceil(value)), Number.MAX_SAFE_INTEGER))

/**
 * Reserves what the request may cost. Returns a refusal if a budget has too little. The price depends on the model
 * that the provider is asked for, which `call` does not have yet; `outgoing` is undefined for realtime sessions.
 */
export function reserveSpend(
  call: ModelCall,
  outgoing: OutgoingRequest | undefined,
  bodyBytes: number,
): RespondVerdict | undefined | Promise<RespondVerdict | undefined> {
  const budgets = budgetsOf(call.context.exchange)
  if (budgets === undefined) return undefined
  const input = Math.ceil(bodyBytes / bytesPerToken)
  const usage = { input, uncachedInput: input, output: outputOf(call, outgoing) }
  const { catalog, details, provider, context } = call
  const priced = { catalog, details, provider, outgoing, context }
  return budgets.reserve(context.exchange, new UsageSpend(priced, usage))
}

/** The limit that the provider gets counts: policies and translations may set another one than the client. */
function outputOf({ request }: ModelCall, outgoing: OutgoingRequest | undefined): number {
  if (request === undefined || request.format.operation === 'embeddings') return 0
  const { format, body, model } = request
  const asked = outputLimit(body.fields)
  const sent = (outgoing?.body && outputLimit(outgoing.body)) ?? asked
  // A translation may need a limit where the client has none, which is far above usual outputs.
  const each = asked === undefined ? usualOutput(model, sent) : (sent ?? asked)
  const prompts = format.promptsIn?.(body.whole) ?? 1
  // Averages, and limits of clients, may have fractions, and amounts are whole.
  const all =
    Math.ceil(Math.max(0, each)) * Math.ceil(answersAsked(body.fields)) * Math.max(1, prompts)
  return Math.min(all, Number.MAX_SAFE_INTEGER)
}

/** The output tokens of recent answers of a model, or the limit of a request if that is less. */
export const usualOutput = (model: string, limit: number | undefined): number =>
  Math.ceil(Math.min(averages.get(model) ?? firstOutput, limit ?? Number.POSITIVE_INFINITY))

/** Tells budgets what a finished request has used. Requests that the gateway does not read have no usage. */
export function noteSpend(call: ModelCall, usage: Usage | undefined): void {
  const budgets = budgetsOf(call.context.exchange)
  if (budgets === undefined) return
  const embedding = call.comparison?.use
  const isSent = call.outgoing !== undefined
  // A stored answer costs nothing but the embedding, even if an earlier attempt has reserved something.
  if (!isSent && embedding === undefined && call.answer?.hit === undefined) return
  if (isSent && usage !== undefined && call.request !== undefined)
    learnOutput(call.request.model, usage.output)
  const own = isSent && usage ? new UsageSpend(call, usage) : undefined
  budgets.used(embedding ? new ComparedSpend(own, embedding) : own)
}

function learnOutput(model: string, output: number): void {
  const before = averages.get(model)
  if (before === undefined && averages.size >= maxModels) return
  averages.set(model, before === undefined ? output : before + weight * (output - before))
}
