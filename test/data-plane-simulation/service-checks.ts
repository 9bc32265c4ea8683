/** The invariants of exchanges that concern the services of policies. */
import type { Violation } from './checks.ts'
import type { SimulatedRoute } from './configuration.ts'
import type { Exchange } from './exchange.ts'
import { type Message, statusOf, valuesOf } from './http1-reader.ts'
import { callerField } from './services/authorization.ts'
import type { Direction, Processing } from './services/processing.ts'
import { processedField } from './services/processor.ts'

type Say = (text: string) => void

export function checkServices(
  exchange: Exchange,
  route: SimulatedRoute,
  sayOf: (invariant: Violation['invariant']) => Say,
): void {
  const { processing } = exchange
  checkCounting(exchange, sayOf('accounts'))
  checkAuthorization(exchange, route, sayOf('protection'))
  checkJudgements(exchange, sayOf('protection'))
  if (processing === undefined) return
  checkProcessed(exchange, processing, sayOf('protection'))
  checkReceived(exchange, processing, sayOf('framing'))
  if (processing.isReset && isOver(exchange, processing)) {
    sayOf('progress')('the call of its processor is reset, although nothing is missing')
  }
}

/** Whether the exchange and the conversation about it have ended in order. */
function isOver({ excuse, arrivals, responses }: Exchange, processing: Processing): boolean {
  const { ending, lingerMs, isSlow, hasRequest, hasResponse } = processing
  const hasEnded = ending !== undefined && !(ending === 'lost' && processing.isReset)
  if (excuse !== undefined || hasEnded || lingerMs > 4_000 || isSlow) return false
  // The rest of a body that is replaced need not be sent.
  if (processing.request.replaces || processing.response.replaces) return false
  const last = arrivals.at(-1)
  const isDone = last?.hasResponded === true && last.message.isComplete && !last.isReset
  const [response] = responses
  const isForwarded = response?.isComplete === true && valuesOf(response, 'x-tag').length > 0
  return isDone && isForwarded && hasRequest && hasResponse
}

function checkAuthorization(exchange: Exchange, { sentBody }: SimulatedRoute, say: Say): void {
  const { authorization, request, arrivals } = exchange
  if (authorization === undefined) return
  for (const body of authorization.bodies) {
    const expected = sentBody === undefined ? Buffer.alloc(0) : request.body
    if (!body.equals(expected)) say('the authorization service gets another body')
  }
  const callers = authorization.plan.answer === 'allow' ? [exchange.tag] : []
  for (const { message, upstream } of arrivals) {
    const found = valuesOf(message, callerField)
    if (found.join() !== callers.join()) say(`${upstream} gets the caller ${found}`)
  }
}

/** A rate limit service counts a request once, although its connections may be lost. */
function checkCounting({ counting }: Exchange, say: Say): void {
  if (counting === undefined) return
  const { requests, charges } = counting
  if (requests > 1) say(`is counted as ${requests} requests`)
  if (charges.length > 1) say(`is charged ${charges.length} times`)
}

/** What a webhook has not let pass does not reach the client. */
function checkJudgements({ judgements, responses, chat }: Exchange, say: Say): void {
  if (judgements.response === undefined || judgements.response.hasPassed) return
  for (const { body } of responses) {
    if (chat?.hasSpeech(body) === true) say('gets what a webhook has not let pass')
  }
}

/** Upstreams and the client get what the processor has let pass, with its mark. */
function checkProcessed(exchange: Exchange, processing: Processing, say: Say): void {
  const { arrivals, responses, tag } = exchange
  for (const { message, upstream } of arrivals) {
    const found = valuesOf(message, processedField)
    if (found.join() !== tag) say(`${upstream} gets the mark ${found} of a processor`)
  }
  for (const response of responses) {
    const isForwarded = valuesOf(response, 'x-tag').length > 0
    const respondedAt = arrivals.at(-1)?.respondedAt ?? 0
    const problem = isForwarded ? processing.problemOfResponse(respondedAt) : undefined
    if (problem !== undefined) say(`the response ${response.startLine} ${problem}`)
    const marks = processing.answered.has('responseHeaders') && isForwarded ? tag : ''
    const found = valuesOf(response, processedField).join()
    if (found !== marks) say(`the client gets the mark ${found} of a processor, and not ${marks}`)
  }
}

/** Processors get what was sent, in its order. */
function checkReceived(exchange: Exchange, processing: Processing, say: Say): void {
  const { request, arrivals, chat } = exchange
  const check = (direction: Direction, bodies: readonly Buffer[]) => {
    const received = Buffer.concat(processing.received[direction])
    const isBeginning = bodies.some((body) => received.equals(body.subarray(0, received.length)))
    if (!isBeginning && received.length > 0) say(`its processor gets another ${direction} body`)
  }
  check('request', [request.body])
  if (chat === undefined) {
    const plans = arrivals.map(({ plan }) => plan.body)
    check('response', plans)
  }
}

/** Whether a response is the one by which the processor refuses the exchange. */
export function isRefusalOfProcessor(
  response: Message,
  { processing, request, tag, excuse }: Exchange,
  say: Say,
): boolean {
  if (valuesOf(response, 'x-refused').length === 0) return false
  if (processing?.ending !== 'refused') say('gets a refusal that its processor has not sent')
  else if (statusOf(response) !== processing.status) say(`gets the refusal ${response.startLine}`)
  else if (request.method === 'HEAD' || (!response.isComplete && excuse !== undefined)) return true
  else if (!response.isComplete) say('gets a part of the refusal of its processor')
  else if (`${response.body}` !== `${tag} is refused`) {
    say(`gets the refusal ${response.body}`)
  }
  return true
}
