/** The invariants of an exchange. */
import type { AccessRecord } from '../../src/gateway/proxy/telemetry/types.ts'
import type { SimulatedRoute } from './configuration.ts'
import { type Arrival, type Exchange, tagsIn } from './exchange.ts'
import { type Message, statusOf, valuesOf } from './http1-reader.ts'
import { refusalsOf, statusesByServices } from './policies.ts'
import { checkServices, isRefusalOfProcessor } from './service-checks.ts'

/** Names the invariant and the exchange. */
export interface Violation {
  readonly invariant:
    | 'isolation'
    | 'protection'
    | 'framing'
    | 'progress'
    | 'accounts'
    | 'truth'
    | 'memory'
  readonly text: string
}

type Report = (violation: Violation) => void

/** Methods whose repetition changes nothing more at the server (RFC 9110 9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'])

export function checkExchange(
  exchange: Exchange,
  route: SimulatedRoute,
  records: readonly AccessRecord[],
  report: Report,
): void {
  const say = (invariant: Violation['invariant']) => (text: string) =>
    report({ invariant, text: `${exchange.tag}: ${text}` })
  checkIsolation(exchange, say('isolation'))
  checkSecrets(exchange, say('protection'))
  checkArrivals(exchange, route, say('framing'))
  checkMirrored(exchange, route, say)
  const own = records.filter(({ path }) => path.includes(exchange.tag))
  checkServices(exchange, route, say)
  const refusals = refusalsOf(exchange, route)
  if (refusals !== undefined) {
    checkRefusal(exchange, refusals, isLate(route, own), say('protection'))
    return
  }
  checkResponse(exchange, route, own, say('framing'), say('progress'))
  if (isLate(route, own) && isBrisk(exchange, route)) {
    say('progress')('takes too long, although neither its client nor its upstreams or services do')
  }
  checkRecord(exchange, own, say('truth'))
}

/** Checks that no response, of a model or of the gateway, contains a secret that the masks replace. */
function checkSecrets({ chat, responses }: Exchange, say: (text: string) => void): void {
  for (const { startLine, fields, body } of responses) {
    if (chat?.hasSecret(`${fields.flat().join(' ')} ${body}`)) {
      say(`gets the secret of the model in ${startLine}: ${body}`)
    }
  }
}

/** Checks that neither the client nor an upstream receives a tag of another exchange. */
function checkIsolation(exchange: Exchange, say: (text: string) => void): void {
  const received = [
    ...exchange.responses.map((message) => ['its client', message] as const),
    ...exchange.informational.map((message) => ['its client', message] as const),
    ...exchange.arrivals.map(({ upstream, message }) => [upstream, message] as const),
  ]
  for (const [who, message] of received) {
    for (const tag of tagsIn(message)) {
      if (tag !== exchange.tag) say(`${who} gets ${tag} in ${message.startLine}`)
    }
  }
}

/** Upstreams get what the client has sent, and not more often than they may. */
function checkArrivals(
  exchange: Exchange,
  { retries, isModel, upstreams }: SimulatedRoute,
  say: (text: string) => void,
): void {
  const { request, arrivals, isSent, chat } = exchange
  for (const { message, upstream, plan } of arrivals) {
    const [method, path] = message.startLine.split(' ')
    // A model has paths of its own.
    if (method !== request.method || (chat === undefined && path !== request.path)) {
      say(`${upstream} gets ${message.startLine}`)
    }
    const isWhole = message.isComplete && request.framing !== 'none'
    const isReplaced = exchange.processing?.request.replaces === true
    const problem = exchange.contentOf(plan).problemOfRequest(message.body, isWhole)
    if (problem !== undefined) say(`${upstream} ${problem}`)
    if (isWhole && !isSent && request.body.length > 0 && !isReplaced)
      say(`${upstream} gets a whole request of which the client sent a part`)
    for (const [name, value] of message.trailers) {
      const isKnown = request.trailers.some(
        ([other, text]) => other.toLowerCase() === name.toLowerCase() && text === value,
      )
      if (!isKnown) say(`${upstream} gets the trailer ${name}: ${value}`)
    }
  }
  // A request that may have been processed is sent again only if that does no harm, or if the route says so.
  const most = (isModel ? upstreams.length : 1) * (1 + retries)
  if (!idempotent.has(request.method) && arrivals.length > most) {
    say(`${request.method} reaches upstreams ${arrivals.length} times`)
  }
}

/** A mirror gets at most one copy of a request, which is what the upstream gets. */
function checkMirrored(
  { mirrored, isSent }: Exchange,
  route: SimulatedRoute,
  say: (invariant: Violation['invariant']) => (text: string) => void,
): void {
  if (mirrored === undefined) return
  mirrored.isSent = isSent
  checkIsolation(mirrored, say('isolation'))
  checkArrivals(mirrored, route, say('framing'))
  const { length } = mirrored.arrivals
  if (length > 1) say('framing')(`reaches its mirror ${length} times`)
}

/** Whether the time of the route has passed. */
const isLate = ({ timeoutMs }: SimulatedRoute, [record]: readonly AccessRecord[]): boolean =>
  record !== undefined && record.durationMs >= timeoutMs

function checkRefusal(
  { arrivals, responses, excuse }: Exchange,
  statuses: readonly number[],
  isLate: boolean,
  say: (text: string) => void,
): void {
  for (const { upstream } of arrivals) say(`reaches ${upstream}, although a policy refuses it`)
  const [response] = responses
  if (response === undefined && excuse === undefined) say('gets no refusal')
  if (response === undefined || excuse !== undefined) return
  const found = statusOf(response)
  if (!statuses.includes(found) && !(isLate && found === 504)) {
    say(`gets ${response.startLine} in place of a refusal with ${statuses}`)
  }
}

/** Whether the upstream breaks off what the client could otherwise get whole. */
const breaksOff = ({ plan: { fault }, isReset }: Arrival): boolean =>
  isReset || (fault !== 'none' && fault !== 'end after the response')

function checkResponse(
  exchange: Exchange,
  route: SimulatedRoute,
  records: readonly AccessRecord[],
  say: (text: string) => void,
  sayStuck: (text: string) => void,
): void {
  const { responses, arrivals, excuse } = exchange
  const [response, second] = responses
  if (second !== undefined) say(`gets a second response: ${second.startLine}`)
  if (response === undefined) {
    // A response may be broken off before a slow client gets any of it.
    const isBroken =
      (exchange.processing?.ending !== undefined && arrivals.length > 0) ||
      (exchange.isCutOff && isExplained(exchange, route, records))
    if (excuse === undefined && !isBroken) sayStuck('its client gets no response')
    return
  }
  if (isRefusalOfProcessor(response, exchange, say)) return
  const [own] = valuesOf(response, 'x-tag')
  const byServices = statusesByServices(exchange, route)
  if (own === undefined) {
    if (byServices.includes(statusOf(response))) return
    if (!isExplained(exchange, route, records) && excuse === undefined) {
      const text = response.body.toString('latin1').slice(0, 80)
      say(`gets ${statusOf(response)} "${text}" from the gateway, although nothing went wrong`)
    }
    return
  }
  const source = arrivals.findLast(({ plan }) => plan.status === statusOf(response))
  if (source === undefined) {
    say(`gets ${response.startLine}, which no upstream has sent`)
    return
  }
  const mayBeCut =
    isExplained(exchange, route, records) || exchange.processing?.ending !== undefined
  checkForwarded(response, source, exchange, mayBeCut, say)
}

/** Whether the gateway has a reason to respond itself. */
function isExplained(
  { arrivals, request, chat, sharesConnection }: Exchange,
  route: SimulatedRoute,
  records: readonly AccessRecord[],
): boolean {
  const last = arrivals.at(-1)
  if (last !== undefined && breaksOff(last)) return true
  // The gateway writes the errors of vendors in the client's format.
  if (chat !== undefined && last !== undefined && last.plan.usage === undefined) return true
  if (isLate(route, records)) return true
  // A connection may end while a request is sent on it that must not, or cannot, be sent twice.
  const mayRepeat = idempotent.has(request.method) && request.framing === 'none'
  return last === undefined && (sharesConnection || (route.mayEnd && !mayRepeat))
}

const shortBody = 5_000
const longTime = 10_000

/** Whether nothing of the exchange itself takes long. */
function isBrisk(exchange: Exchange, { timeoutMs, upstreams }: SimulatedRoute): boolean {
  const { request, plans, arrivals, excuse, authorization, processing, judgements } = exchange
  if (exchange.hasSlowClient || excuse !== undefined || timeoutMs < longTime) return false
  if (request.expectsContinue || request.body.length > shortBody) return false
  if (plans.some(({ pauseMs, body }) => pauseMs > 0 || body.length > shortBody)) return false
  if (arrivals.some(breaksOff) || arrivals.length > upstreams.length) return false
  if (authorization !== undefined && authorization.plan.answer !== 'allow') return false
  if (processing?.fault !== undefined || processing?.ending !== undefined) return false
  return [judgements.request, judgements.response].every((one) => one?.mayPass !== false)
}

function checkForwarded(
  response: Message,
  arrival: Arrival,
  exchange: Exchange,
  mayBeCut: boolean,
  say: (text: string) => void,
): void {
  const { body, isComplete } = response
  const { plan } = arrival
  const hasNoBody = exchange.request.method === 'HEAD' || plan.framing === 'none'
  // A body that ends with its connection has no end that could be missed.
  const mayBeShort = plan.framing === 'close' && plan.fault === 'end in the body'
  const isWhole = isComplete && !mayBeShort
  const problem = hasNoBody ? undefined : exchange.contentOf(plan).problemOfResponse(body, isWhole)
  if (problem !== undefined) say(problem)
  else if (!isComplete && exchange.excuse === undefined && !mayBeCut && !breaksOff(arrival)) {
    say(`gets a response that is cut off after ${body.length} of ${plan.body.length} bytes`)
  }
}

/** The access record says what happened. */
function checkRecord(
  { responses, excuse, mayLackRecord }: Exchange,
  own: readonly AccessRecord[],
  say: (text: string) => void,
): void {
  const [response] = responses
  if (own.length > 1) say(`has ${own.length} records`)
  const [record] = own
  if (response === undefined) return
  if (record === undefined) {
    if (excuse === undefined && !mayLackRecord) say('has no record')
  } else if (record.status !== statusOf(response)) {
    say(`is recorded with ${record.status}, and its client gets ${statusOf(response)}`)
  }
}
