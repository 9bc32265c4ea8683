/** What one exchange of a simulation is meant to be, and what became of it. */
import type { Random } from '../virtual-time/random.ts'
import type { KeyKind } from './api-keys.ts'
import { type Content, PlainContent, whole } from './content.ts'
import type { BilledUsage } from './formats/format.ts'
import { HeldBytes } from './held-bytes.ts'
import type { Field, Message } from './http1-reader.ts'
import { ErrorContent, type ModelChat, UnreadableContent } from './model.ts'
import type { Authorization } from './services/authorization.ts'
import type { Processing } from './services/processing.ts'
import type { Counting } from './services/rate-limits.ts'
import type { Judgement } from './services/webhooks.ts'
import type { ExchangeSession } from './sessions.ts'

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
  /** What a vendor bills for it; undefined if it bills nothing. */
  readonly usage?: BilledUsage
  /** Set if a model responds in a form that guards cannot read: the usage that it states. */
  readonly unreadUsage?: BilledUsage
}

/** A request that an upstream has begun to read. */
export interface Arrival {
  readonly upstream: string
  readonly message: Message
  readonly plan: ResponsePlan
  /** When it began. */
  readonly at: number
  /** Whether its connection has carried another request before. */
  readonly isOnKeptConnection: boolean
  /** When its response has begun. */
  respondedAt: number
  /** Whether the upstream has closed the connection before it had read the request, which resets it. */
  isReset: boolean
  /** Whether the upstream has sent all of its response. */
  hasResponded: boolean
  /** What the gateway holds of its response. */
  readonly held: HeldBytes
}

/** What the policy services of the route do with an exchange; undefined without such a policy. */
export interface ServiceParts {
  readonly authorization: Authorization | undefined
  readonly processing: Processing | undefined
  readonly counting: Counting | undefined
  /** Webhooks that guard a model. */
  readonly judgements: {
    readonly request: Judgement | undefined
    readonly response: Judgement | undefined
  }
}

/** What policies decide about an exchange. */
interface PolicyParts extends ServiceParts {
  /** The API key that the client sends, if the route needs one. */
  readonly keyKind: KeyKind
}

export class Exchange implements PolicyParts {
  readonly tag: string
  readonly route: string
  readonly request: RequestPlan
  /** What the upstreams do with the first, second … arrival; the last plan also serves the others. */
  readonly plans: readonly ResponsePlan[]
  /** Set if the bodies are a chat with a model. */
  readonly chat: ModelChat | undefined
  readonly authorization: Authorization | undefined
  readonly processing: Processing | undefined
  readonly counting: Counting | undefined
  readonly judgements: ServiceParts['judgements']
  /** When the client has begun to send it. */
  begunAt: number | undefined
  readonly arrivals: Arrival[] = []
  readonly keyKind: KeyKind
  /** The same request as the mirror of the route gets it; undefined if it gets none. */
  mirrored: Exchange | undefined
  /** Whether the client has written the whole request. */
  isSent = false
  /** What the gateway holds of the request. */
  readonly held = new HeldBytes()
  /** Responses other than informational ones, as far as they have arrived. */
  readonly responses: Message[] = []
  readonly informational: Message[] = []
  /** Whether its client pauses while it sends or reads. */
  hasSlowClient = false
  isHttp2Client = false
  /** Whether its request may share a connection to an upstream, which another exchange may end. */
  sharesConnection = false
  /** Whether its connection has ended with a part of its response, or before it. */
  isCutOff = false
  /** Whether the worker has died since it began. */
  mayLackRecord = false
  /** Set if its route has sessions. */
  session: ExchangeSession | undefined
  /** Why the exchange needs no response: its client or an earlier response on the connection has ended it. */
  excuse: string | undefined

  constructor(
    tag: string,
    route: string,
    request: RequestPlan,
    plans: readonly ResponsePlan[],
    chat: ModelChat | undefined,
    services: PolicyParts,
  ) {
    this.tag = tag
    this.route = route
    this.request = request
    this.plans = plans
    this.chat = chat
    this.authorization = services.authorization
    this.processing = services.processing
    this.counting = services.counting
    this.judgements = services.judgements
    this.keyKind = services.keyKind
  }

  /** What the bodies must be if an upstream follows a plan. */
  contentOf({ body, usage, unreadUsage }: ResponsePlan): Content {
    const { chat, processing, request } = this
    if (chat !== undefined && unreadUsage !== undefined) return new UnreadableContent(chat)
    if (chat !== undefined) return usage === undefined ? new ErrorContent(chat) : chat
    return new PlainContent(
      processing?.expectedRequest() ?? whole(request.body),
      processing?.expectedResponse(body) ?? whole(body),
    )
  }

  /** Called when the system of the gateway has taken bytes to send them to the client. */
  onSent(): void {
    this.arrivals.at(-1)?.held.wrote()
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
  return tagsInText(text)
}

export const firstTagIn = (text: string): string | undefined => /~c\d+r\d+~/.exec(text)?.[0]

export const tagsInText = (text: string): Set<string> => new Set(text.match(tagPattern))

/** A body of about `size` bytes in which the tag stands again and again. */
function bodyOf(tag: string, size: number): Buffer {
  return Buffer.from(`${tag}0123456789`.repeat(Math.ceil(size / (tag.length + 10))).slice(0, size))
}

const sizes = [0, 1, 20, 300, 5_000, 20_000, 70_000]
/** Sizes of bodies that no buffer and no window of a stream holds as a whole. */
const largeSizes = [300, 5_000, 300_000, 900_000]
const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']

const sizeFor = (random: Random, most: number): number =>
  random.pick((most > 70_000 ? largeSizes : sizes).filter((size) => size <= most))

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
  // Servers read both as one value, `reader, writer`.
  if (random.chance(0.05)) fields.push(['X-Role', 'writer'])
  if (random.chance(0.3)) fields.push(['X-Auth-User', `${tag} forged`])
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

/** The request to a model in place of a plain one. */
export function chatRequest(
  plain: RequestPlan,
  tag: string,
  route: string,
  { request, formats }: ModelChat,
): RequestPlan {
  const fields: Field[] = [...plain.fields, ['Content-Type', 'application/json']]
  const path = `/${route}/${tag}${formats.client.path}`
  const common = { trailers: [], expectsContinue: false }
  return { method: 'POST', path, fields, framing: 'length', body: request, ...common }
}

/** The response of a model in place of a plain one: what it says, or an error of its vendor. */
export function chatResponse(
  random: Random,
  plan: ResponsePlan,
  tag: string,
  chat: ModelChat,
): ResponsePlan {
  const framing = plan.framing === 'none' ? 'length' : plan.framing
  const common = { ...plan, framing, trailers: [], isEarly: false }
  const typed = (type: string): Field[] => [...plan.fields, ['Content-Type', type]]
  if (random.chance(0.15)) {
    const body = Buffer.from(JSON.stringify(chat.formats.vendor.error(tag)))
    return {
      ...common,
      status: random.pick([429, 500, 503]),
      fields: typed('application/json'),
      body,
    }
  }
  const usage = randomUsage(random)
  const fields = typed(chat.isStream ? 'text/event-stream' : 'application/json')
  const body = chat.respond(usage)
  if (random.chance(0.92)) return { ...common, status: 200, fields, body, usage }
  const odd = unreadable(random, body)
  return { ...common, status: 200, fields: typed(odd.type), body: odd.body, unreadUsage: usage }
}

function randomUsage(random: Random): BilledUsage {
  const [input, output] = [2 + random.below(1_000), 2 + random.below(1_000)]
  if (random.chance(0.8)) return { input, output }
  const compacted = { input: 1 + random.below(input - 1), output: 1 + random.below(output - 1) }
  return { input, output, compacted }
}

/** Makes a response that is not one of a model, or is not typed as one. */
function unreadable(
  random: Random,
  body: Buffer,
): { readonly body: Buffer; readonly type: string } {
  const text = body.toString()
  const [json, events] = ['application/json', 'text/event-stream']
  return random.pick([
    { body: Buffer.from(`[${text}]`), type: json },
    { body: Buffer.from(text.slice(0, -2)), type: json },
    { body: Buffer.from(`${text}${text}`), type: json },
    { body: Buffer.from(JSON.stringify(text)), type: json },
    { body, type: 'text/plain' },
    { body, type: 'application/octet-stream' },
    { body: Buffer.from(`data: <p>${text}\n\n`), type: events },
    { body: Buffer.from(JSON.stringify({ model: 'm', response: text })), type: json },
  ])
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
