import { type Infer, record } from '../../../ground/base/shape.ts'
import { onExchangeEnd } from '../../../ground/exchange/cleanup.ts'
import {
  type Callouts,
  type CalloutTarget,
  type Exchange,
  next,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { takeResponse } from '../../../ground/exchange/interruption.ts'
import { calloutTarget } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'
import { claimsMetadata } from '../ext-auth/check-request.ts'
import { isOwnAnswer, sendRequest, sendResponse } from './converse.ts'
import { takeOver } from './immediate.ts'
import { answerIn, Processing } from './processing.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({ target: calloutTarget })

/** Numbers the policies, so that those of both phases store their conversations under different keys. */
let policies = 0

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ target }, callouts) {
    const extension = `extProc.${policies++}`
    return {
      onRequest: (exchange) => processRequest(exchange, target, callouts, extension),
      onResponse(exchange) {
        const processing = exchange.extensions.get(extension) as Processing | undefined
        if (processing === undefined || isOwnAnswer(exchange) || processing.hasPassed) return
        return processResponse(exchange, processing)
      },
    }
  },
}

export default apply

async function processRequest(
  exchange: Exchange,
  target: CalloutTarget,
  callouts: Callouts,
  extension: string,
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
  exchange.extensions.set(extension, processing)
  onExchangeEnd(exchange, () => processing.close())
  try {
    await sendRequest(exchange, processing, claimsMetadata(exchange))
    // The processor may have been lost at once after its answer.
    processing.requireIntact()
    return next
  } catch (error) {
    return answerInstead(exchange, error)
  }
}

function answerInstead(exchange: Exchange, error: unknown): Verdict {
  const answer = answerIn(error)
  if (answer === undefined) throw error
  takeResponse(exchange)
  return answer
}

async function processResponse(exchange: Exchange, processing: Processing): Promise<void> {
  try {
    await sendResponse(exchange, processing)
  } catch (error) {
    const verdict = answerInstead(exchange, error)
    if (verdict.kind === 'respond') takeOver(exchange, verdict, 'traffic.extProc')
  }
}
