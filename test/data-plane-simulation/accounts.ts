/** Limits and usage: what passes is at most what may pass, and what is recorded is what vendors bill. */

import type { RequestLimit, SimulatedRoute, TokenLimit } from './configuration.ts'
import type { Exchange } from './exchange.ts'
import type { BilledUsage } from './formats/format.ts'
import { statusOf } from './http1-reader.ts'

type Say = (text: string) => void

/** What the gateway has recorded about the usage of an exchange. */
export interface RecordedUsage {
  /** When the exchange was over for the gateway. */
  readonly at: number
  readonly usage: BilledUsage | undefined
}

const unitMs = { Seconds: 1_000, Minutes: 60_000 } as const

/** The recorded usage is that of the response that the gateway has read. */
export function checkUsage(exchange: Exchange, { usage }: RecordedUsage, say: Say): void {
  const { arrivals, responses, judgements, excuse, counting } = exchange
  const [charge] = counting?.charges ?? []
  if (usage !== undefined && charge !== undefined) {
    const tokens = usage.input + usage.output
    if (charge < BigInt(tokens)) say(`is charged ${charge} tokens, and recorded with ${tokens}`)
  }
  const billed = arrivals
    .map(({ plan }) => plan.usage ?? plan.unreadUsage)
    .filter((one) => one !== undefined)
  const isBilled = (one: BilledUsage) => one.input === usage?.input && one.output === usage.output
  // Streams of vendors C and D report the input first, with at most the first token of the output.
  // Vendor C leaves compactions out of it.
  const isBegun = ({ input, compacted }: BilledUsage) =>
    usage !== undefined &&
    [input, input - (compacted?.input ?? 0)].includes(usage.input) &&
    usage.output <= 1
  if (usage !== undefined && !billed.some((one) => isBilled(one) || isBegun(one))) {
    say(`is recorded with ${usage.input} and ${usage.output} tokens, which no vendor has billed`)
  }
  const last = arrivals.at(-1)
  const expected = last?.hasResponded === true ? last.plan.usage : undefined
  const [response] = responses
  const isRead = response?.isComplete === true && statusOf(response) === 200
  const isJudged = (judgements.response?.asked ?? 0) > 0
  if (expected === undefined || excuse !== undefined || !(isRead || isJudged)) return
  // A response that was broken off for the client may end like a whole one, with an error event.
  if (response !== undefined && `${response.body}`.includes('"error"')) return
  if (usage === undefined) say('is recorded without a usage')
  else if (!isBilled(expected)) say(`is recorded with ${usage.input} and ${usage.output} tokens`)
}

/** A limit of requests admits what it may at most, and refuses nothing before. */
export function checkRequestLimit(
  { requests, unit, burst }: RequestLimit,
  route: SimulatedRoute,
  exchanges: readonly Exchange[],
  say: Say,
): void {
  const refused = exchanges.find(isLimited)
  const begun = exchanges.filter(({ begunAt }) => begunAt !== undefined).length
  const isOnly = route.tokenLimit === undefined && !route.isCounted
  if (refused !== undefined && begun <= requests + burst && isOnly) {
    say(`${refused.tag} is refused as one of ${begun} requests`)
  }
  // Between the beginning of one request and the arrival of another, the bucket has no more to give.
  const admitted = exchanges.flatMap(({ begunAt, arrivals: [first] }) =>
    begunAt === undefined || first === undefined ? [] : [{ from: begunAt, to: first.at }],
  )
  for (const { from } of admitted) {
    for (const { to } of admitted) {
      if (to < from) continue
      const count = admitted.filter((one) => one.from >= from && one.to <= to).length
      const most = requests + burst + ((to - from) * requests) / unitMs[unit]
      if (count > most + 0.01) say(`${count} requests are admitted in ${to - from} ms`)
    }
  }
}

const isLimited = ({ responses: [first], arrivals }: Exchange): boolean =>
  first !== undefined && statusOf(first) === 429 && arrivals.length === 0

/** Tokens that were billed before a request began were charged before it was admitted. */
export function checkTokenLimit(
  { tokens, unit, burst }: TokenLimit,
  exchanges: readonly Exchange[],
  recordOf: (exchange: Exchange) => RecordedUsage | undefined,
  say: Say,
): void {
  const charges = exchanges.flatMap((exchange) => {
    const { at, usage } = recordOf(exchange) ?? {}
    return at === undefined || usage === undefined
      ? []
      : [{ at, from: exchange.begunAt ?? 0, tokens: usage.input + usage.output }]
  })
  const rate = tokens / unitMs[unit]
  for (const { tag, begunAt, arrivals } of exchanges) {
    const [first] = arrivals
    if (begunAt === undefined || first === undefined) continue
    for (const { from } of charges) {
      const charged = charges
        .filter((one) => one.from >= from && one.at <= begunAt)
        .reduce((sum, one) => sum + one.tokens, 0)
      const most = tokens + burst + (first.at - from) * rate
      if (charged > most) say(`${tag} is admitted after ${charged} of ${most} tokens`)
    }
  }
}
