import { record, type Shape } from '../../base/shape.ts'
import { onceOver } from '../../exchange/cleanup.ts'
import {
  type Callouts,
  type CalloutTarget,
  type Exchange,
  next,
  type Verdict,
} from '../../exchange/exchange.ts'
import { takeAnswer } from '../../exchange/interruption.ts'
import { calloutTarget } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'
import { claimsMetadata } from '../ext-auth/check-request.ts'
import { isOwnAnswer, sendRequest, sendResponse } from './converse.ts'
import { takeOver } from './immediate.ts'
import { answerIn, Processing } from './processing.ts'

/** Version 1. */
export interface ExtProcConfig {
  readonly target: CalloutTarget
}

const shape: Shape<ExtProcConfig> = record({ target: calloutTarget })

/** Each policy keeps its conversation under a key of its own: two phases may ask two processors. */
let policies = 0

const apply: PolicyApply<ExtProcConfig> = {
  shape,
  bind({ target }, callouts) {
    const fact = `extProc.${policies++}`
    return {
      onRequest: (exchange) => processRequest(exchange, target, callouts, fact),
      onResponse(exchange) {
        const processing = exchange.facts.get(fact) as Processing | undefined
        if (processing === undefined || isOwnAnswer(exchange) || processing.isOver) return
        return processResponse(exchange, processing)
      },
    }
  },
}

export default apply

async function processRequest(
  exchange: Exchange,
  target: ExtProcConfig['target'],
  callouts: Callouts,
  fact: string,
): Promise<Verdict> {
  const { learned } = exchange
  const processing = new Processing({
    target,
    exchange,
    callouts,
    learn: (metadata) => {
      learned.extproc = { ...learned.extproc, ...metadata }
    },
  })
  exchange.facts.set(fact, processing)
  onceOver(exchange, () => processing.close())
  try {
    await sendRequest(exchange, processing, claimsMetadata(exchange))
    return next
  } catch (error) {
    return answerInstead(exchange, error)
  }
}

function answerInstead(exchange: Exchange, error: unknown): Verdict {
  const answer = answerIn(error)
  if (answer === undefined) throw error
  takeAnswer(exchange)
  return answer
}

async function processResponse(exchange: Exchange, processing: Processing): Promise<void> {
  try {
    await sendResponse(exchange, processing)
  } catch (error) {
    const verdict = answerInstead(exchange, error)
    if (verdict.kind === 'respond') takeOver(exchange, verdict)
  }
}
