/** What one exchange of a simulation is meant to be, and what became of it. */
import type { Random } from '../virtual-time/random.ts'
import { type Content, PlainContent } from './content.ts'
import type { Field, Message } from './http1-reader.ts'
import type { ModelChat } from './model.ts'

export type Framing = 'none' | 'length' | 'chunked' | 'close'

/** A request as the client sends it. Everything that can carry a text carries the tag of the exchange. */
export interface RequestPlan {
  readonly method: string
  readonly path: string
  readonly fields: readonly Field[]
  readonly framing: Framing
  readonly body: Buffer
  readonly trailers: readonly Field[]
  /** Whether the client waits for 100 (Continue) before it sends the body. */
  readonly expectsContinue: boolean
}

/** Where an upstream breaks off. */
export type UpstreamFault =
  | 'none'
  | 'reset before the head'
  | 'end before the head'
  | 'reset in the body'
  | 'end in the body'
  | 'end after the response'
  | 'silence'

/** What an upstream does with a request. */
export interface ResponsePlan {
  /** Whether the response begins before the request has been read. */
  readonly isEarly: boolean
  readonly delayMs: number
  readonly informational: number
  readonly status: number
  readonly framing: Framing
  readonly body: Buffer
  readonly trailers: readonly Field[]
  readonly fields: readonly Field[]
  readonly fault: UpstreamFault
  /** Longest pause between two pieces of the response. */
  readonly pauseMs: number
}

/** A request that an upstream has begun to read. */
export interface Arrival {
  readonly upstream: string
  readonly message: Message
  readonly plan: ResponsePlan
  /** Whether the upstream has closed the connection before it had read the request, which resets it. */
  isReset: boolean
  /** Whether the upstream has sent all of its response. */
  hasResponded: boolean
}

export class Exchange {
  readonly tag: string
  readonly route: string
  readonly request: RequestPlan
  /** What the upstreams do with the first, second … arrival; the last plan also serves the others. */
  readonly plans: readonly ResponsePlan[]
  /** Set if the bodies are a chat with a model. */
  readonly chat: ModelChat | undefined
  readonly arrivals: Arrival[] = []
  /** Whether the client has written the whole request. */
  isSent = false
  /** Responses other than informational ones, as far as they have arrived. */
  readonly responses: Message[] = []
  readonly informational: Message[] = []
  /** Whether its request may share a connection to an upstream, which another exchange may end. */
  sharesConnection = false
  /** Why the exchange needs no response: its client or an earlier response on the connection has ended it. */
  excuse: string | undefined

  constructor(
    tag: string,
    route: string,
    request: RequestPlan,
    plans: readonly ResponsePlan[],
    chat?: ModelChat,
  ) {
    this.tag = tag
    this.route = route
    this.request = request
    this.plans = plans
    this.chat = chat
  }

  /** What the bodies must be if an upstream follows a plan. */
  contentOf({ body }: ResponsePlan): Content {
    return this.chat ?? new PlainContent(this.request.body, body)
  }

  planOf(arrival: number): ResponsePlan {
    return this.plans[Math.min(arrival, this.plans.length - 1)] as ResponsePlan
  }
}

/** A tag that is found again in any text. */
export const tagOf = (client: number, request: number): string => `~c${client}r${request}~`
const tagPattern = /~c\d+r\d+~/g

/** Returns the tags in a message, wherever they are. */
export function tagsIn(message: Message): Set<string> {
  const fields = [...message.fields, ...message.trailers].flat().join('\n')
  const text = `${message.startLine}\n${fields}\n${message.body.toString('latin1')}`
  return new Set(text.match(tagPattern))
}

/** A body of about `size` bytes in which the tag stands again and again. */
function bodyOf(tag: string, size: number): Buffer {
  return Buffer.from(`${tag}0123456789`.repeat(Math.ceil(size / (tag.length + 10))).slice(0, size))
}

const sizes = [0, 1, 20, 300, 5_000, 20_000, 70_000]
const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']

const sizeFor = (random: Random, most: number): number =>
  random.pick(sizes.filter((size) => size <= most))

/** `most`: largest body, in bytes. */
export function randomRequest(
  random: Random,
  tag: string,
  route: string,
  most: number,
): RequestPlan {
  const method = random.pick(methods)
  const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method) || random.chance(0.1)
  const framing = hasBody ? random.pick(['length', 'chunked'] as const) : 'none'
  const fields: Field[] = [
    ['Host', 'gateway.test'],
    ['X-Tag', tag],
    ['Cookie', `session=${tag}`],
  ]
  if (random.chance(0.6)) fields.push(['X-Role', random.pick(['reader', 'reader', 'writer'])])
  for (let at = random.below(4); at > 0; at--) fields.push([`X-Extra-${at}`, `${tag} ${at}`])
  return {
    method,
    path: `/${route}/${tag}${random.chance(0.3) ? `?q=${tag}` : ''}`,
    fields,
    framing,
    body: hasBody ? bodyOf(tag, sizeFor(random, most)) : Buffer.alloc(0),
    trailers: framing === 'chunked' && random.chance(0.3) ? [['X-Trailer', tag]] : [],
    expectsContinue: hasBody && random.chance(0.15),
  }
}

/** A request to a model. */
export function chatRequest(tag: string, route: string, { request }: ModelChat): RequestPlan {
  const fields: Field[] = [
    ['Host', 'gateway.test'],
    ['X-Tag', tag],
    ['Content-Type', 'application/json'],
  ]
  const path = `/${route}/${tag}/v1/chat/completions`
  const common = { trailers: [], expectsContinue: false }
  return { method: 'POST', path, fields, framing: 'length', body: request, ...common }
}

/** The response of a model: that of a plan, with what the model says. */
export function chatResponse(plan: ResponsePlan, { response, isStream }: ModelChat): ResponsePlan {
  const type = isStream ? 'text/event-stream' : 'application/json'
  const fields: Field[] = [...plan.fields, ['Content-Type', type]]
  const framing = plan.framing === 'none' ? 'length' : plan.framing
  return { ...plan, status: 200, framing, fields, body: response, trailers: [], isEarly: false }
}

const statuses = [200, 200, 200, 200, 201, 204, 301, 304, 400, 404, 500, 503]
const faults: readonly UpstreamFault[] = [
  'reset before the head',
  'end before the head',
  'reset in the body',
  'end in the body',
  'silence',
]

export function randomResponse(
  random: Random,
  tag: string,
  most: number,
  faultChance: number,
  mayEnd: boolean,
): ResponsePlan {
  const status = random.pick(statuses)
  const isBare = status === 204 || status === 304
  const framing = isBare ? 'none' : random.pick(['length', 'length', 'chunked', 'close'] as const)
  const fields: Field[] = [
    ['X-Tag', tag],
    ['Set-Cookie', `session=${tag}`],
  ]
  if (status === 301) fields.push(['Location', `http://gateway.test/${tag}`])
  return {
    isEarly: random.chance(0.15),
    delayMs: random.chance(0.5) ? 0 : random.between(0, 400),
    informational: random.chance(0.1) ? 1 + random.below(2) : 0,
    status,
    framing,
    body: isBare ? Buffer.alloc(0) : bodyOf(tag, sizeFor(random, most)),
    trailers: framing === 'chunked' && random.chance(0.3) ? [['X-Trailer', tag]] : [],
    fields,
    fault: randomFault(random, faultChance, mayEnd),
    pauseMs: random.chance(0.7) ? 0 : random.between(1, 200),
  }
}

function randomFault(random: Random, chance: number, mayEnd: boolean): UpstreamFault {
  if (random.chance(chance)) return random.pick(faults)
  return mayEnd && random.chance(0.3) ? 'end after the response' : 'none'
}

/** Writes a body in its framing. The pieces of a chunked body are cut at random. */
export function framedBody(
  random: Random,
  framing: Framing,
  body: Buffer,
  trailers: readonly Field[],
): Buffer {
  if (framing !== 'chunked') return body
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const size = Math.min(body.length - at, 1 + random.below(random.chance(0.5) ? 40 : 9_000))
    parts.push(Buffer.from(`${size.toString(16)}\r\n`), body.subarray(at, at + size))
    parts.push(Buffer.from('\r\n'))
    at += size
  }
  parts.push(Buffer.from(`0\r\n${linesOf(trailers)}\r\n`))
  return Buffer.concat(parts)
}

export const linesOf = (fields: readonly Field[]): string =>
  fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')

/** The field that says how the body is framed. */
export function framingField(framing: Framing, body: Buffer): readonly Field[] {
  if (framing === 'length') return [['Content-Length', String(body.length)]]
  return framing === 'chunked' ? [['Transfer-Encoding', 'chunked']] : []
}
