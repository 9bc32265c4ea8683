/** The invariants of an exchange. */
import type { AccessRecord } from '../../src/gateway/proxy/telemetry/types.ts'
import type { SimulatedRoute } from './configuration.ts'
import { type Arrival, type Exchange, tagsIn } from './exchange.ts'
import { type Message, statusOf, valuesOf } from './http1-reader.ts'

/** Names the invariant and the exchange. */
export interface Violation {
  readonly invariant: 'isolation' | 'protection' | 'framing' | 'progress' | 'truth'
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
  checkArrivals(exchange, route, say('framing'))
  if (isRefused(exchange, route)) {
    checkRefusal(exchange, say('protection'))
    return
  }
  const own = records.filter(({ path }) => path.includes(exchange.tag))
  checkResponse(exchange, route, own, say('framing'), say('progress'))
  checkRecord(exchange, own, say('truth'))
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
    const problem = exchange.contentOf(plan).problemOfRequest(message.body, isWhole)
    if (problem !== undefined) say(`${upstream} ${problem}`)
    if (isWhole && !isSent) say(`${upstream} gets a whole request of which the client sent a part`)
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

/** Whether the policies of the route refuse the request. */
const isRefused = ({ request }: Exchange, { isGuarded }: SimulatedRoute): boolean =>
  isGuarded && !request.fields.some(([name, value]) => name === 'X-Role' && value === 'reader')

function checkRefusal(
  { arrivals, responses, excuse }: Exchange,
  say: (text: string) => void,
): void {
  for (const { upstream } of arrivals) say(`reaches ${upstream}, although a policy refuses it`)
  const [response] = responses
  if (response === undefined && excuse === undefined) say('gets no refusal')
  if (response !== undefined && statusOf(response) !== 403 && excuse === undefined) {
    say(`gets ${response.startLine} in place of a refusal`)
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
    if (excuse === undefined) sayStuck('its client gets no response')
    return
  }
  const [own] = valuesOf(response, 'x-tag')
  if (own === undefined) {
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
  checkForwarded(response, source, exchange, isExplained(exchange, route, records), say)
}

/** Whether the gateway has a reason to respond itself. */
function isExplained(
  { arrivals, request, sharesConnection }: Exchange,
  { timeoutMs, mayEnd }: SimulatedRoute,
  [record]: readonly AccessRecord[],
): boolean {
  const last = arrivals.at(-1)
  if (last !== undefined && breaksOff(last)) return true
  if (record !== undefined && record.durationMs >= timeoutMs) return true
  // A connection may end while a request is sent on it that must not, or cannot, be sent twice.
  const mayRepeat = idempotent.has(request.method) && request.framing === 'none'
  return last === undefined && (sharesConnection || (mayEnd && !mayRepeat))
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
  const isHead = exchange.request.method === 'HEAD'
  // A body that ends with its connection has no end that could be missed.
  const mayBeShort = plan.framing === 'close' && plan.fault === 'end in the body'
  const isWhole = isComplete && !mayBeShort
  const problem = isHead ? undefined : exchange.contentOf(plan).problemOfResponse(body, isWhole)
  if (problem !== undefined) say(problem)
  else if (!isComplete && exchange.excuse === undefined && !mayBeCut && !breaksOff(arrival)) {
    say(`gets a response that is cut off after ${body.length} of ${plan.body.length} bytes`)
  }
}

/** The access record says what happened. */
function checkRecord(
  { responses, excuse }: Exchange,
  own: readonly AccessRecord[],
  say: (text: string) => void,
): void {
  const [response] = responses
  if (own.length > 1) say(`has ${own.length} records`)
  const [record] = own
  if (response === undefined) return
  if (record === undefined) {
    if (excuse === undefined) say('has no record')
  } else if (record.status !== statusOf(response)) {
    say(`is recorded with ${record.status}, and its client gets ${statusOf(response)}`)
  }
}
