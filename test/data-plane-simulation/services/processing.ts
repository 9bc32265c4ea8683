/** What an external processor of a world is meant to do with an exchange, and what it has done. */
import type { Random } from '../../virtual-time/random.ts'
import { type Passing, whole } from '../content.ts'

export type Direction = 'request' | 'response'
export type Part = `${Direction}${'Headers' | 'Body' | 'Trailers'}`

/** How a processor answers a message. */
export interface SidePlan {
  /** Whether it reads the whole body before it answers the headers. */
  readonly readsBodyFirst: boolean
  /** Whether it answers the headers with a body that replaces the message's. */
  readonly replaces: boolean
  /** With a stream of pieces of its own as the body comes, with such a stream at its end, or piece by piece. */
  readonly body: 'streamed' | 'collected' | 'by piece'
  /** Whether it replaces digits in the body by letters. */
  readonly changes: boolean
}

/** Numbers of Envoy's BodySendMode. */
export const bodyModes = { none: 0, streamed: 1, buffered: 2, fullDuplex: 4 } as const

/** What a processor wants of the response (`mode_override`). */
export interface ModesPlan {
  readonly headers: boolean
  readonly body: number
  readonly trailers: boolean
}

const faultKinds = [
  'end',
  'end',
  'status',
  'reset',
  'break',
  'silence',
  'immediate',
  'immediate',
  // Answers that are not valid: to a part that was not sent, of an unknown status, unreadable, empty.
  'wrong part',
  'unknown status',
  'garbage',
  'empty',
] as const
const faultParts = ['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody'] as const

/** What a processor does when a part arrives: in place of its answer, or after it. */
export interface ProcessorFault {
  readonly kind: (typeof faultKinds)[number]
  readonly part: (typeof faultParts)[number]
  readonly isAfter: boolean
  /** Time between the answer and what comes after it. */
  readonly lagMs: number
}

function randomFault(random: Random): ProcessorFault {
  const kind = random.pick(faultKinds)
  const part = random.pick(faultParts)
  const isAfter = random.chance(0.5)
  const isLate = random.chance(0.5)
  // The wrong part is the right one once the gateway has sent what it answers.
  const lagMs = isLate && kind !== 'wrong part' ? random.between(0, 300) : 0
  return { kind, part, isAfter, lagMs }
}

const randomSide = (random: Random, isDigest: boolean, mayReplace: boolean): SidePlan => ({
  readsBodyFirst: random.chance(0.2),
  replaces: mayReplace && random.chance(0.1),
  body: random.pick(['streamed', 'streamed', 'collected', 'by piece'] as const),
  changes: isDigest && random.chance(0.5),
})

/** Replaces digits that tags do not have by letters, so that bytes differ from the original and keep their length. */
export function changed(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.map((byte) => (byte >= 0x36 && byte <= 0x39 ? byte + 0x1b : byte)))
}

/**
 * Whether a conversation has failed, is over in order, or has refused the exchange. `lost`: the connection has ended
 * after the last answer, which may be lost with it.
 */
export type Ending = 'failed' | 'lost' | 'over' | 'refused' | undefined

/** How often a processor breaks off, and how often it says what it wants of the response. */
export interface ProcessorChances {
  readonly faults: number
  readonly modes: number
}

export class Processing {
  readonly modes: ModesPlan | undefined
  readonly request: SidePlan
  readonly response: SidePlan
  readonly fault: ProcessorFault | undefined
  readonly delayMs: number
  readonly status: number
  /** Time that the processor takes to end the call after the gateway has ended its side. */
  readonly lingerMs: number
  /** Parts that it has answered, and of bodies those whose end it has returned. */
  readonly answered = new Set<Part>()
  /** Bytes that it has returned of each body. */
  readonly returned = { request: [] as Buffer[], response: [] as Buffer[] }
  /** Bytes that it got of each body. */
  readonly received = { request: [] as Buffer[], response: [] as Buffer[] }
  ending: Ending
  /** When it ended. */
  endedAt = 0
  /** Whether the gateway has ended its side of the call. */
  isClosed = false
  /** Whether the connection has ended after a refusal, which may be lost with it. */
  isRefusalLost = false
  /** Whether the gateway has reset the call, which the processor had not ended. */
  isReset = false
  calls = 0
  /** Whether it takes seconds to read a long body. */
  isSlow = false

  /** `isPlain`: whether bodies are plain bytes that it may change. */
  constructor(random: Random, isPlain: boolean, { faults, modes }: ProcessorChances) {
    this.modes = random.chance(modes)
      ? {
          headers: random.chance(0.7),
          body: random.pick(Object.values(bodyModes)),
          trailers: random.chance(0.5),
        }
      : undefined
    const isDuplex = this.modes === undefined || this.modes.body === bodyModes.fullDuplex
    const response = randomSide(random, isPlain, isPlain)
    this.request = randomSide(random, isPlain, isPlain)
    this.response = {
      ...response,
      readsBodyFirst: response.readsBodyFirst && isDuplex,
      body: isDuplex ? response.body : 'by piece',
    }
    this.fault = random.chance(faults) ? randomFault(random) : undefined
    this.delayMs = random.chance(0.6) ? 0 : random.between(0, 200)
    this.status = random.pick([400, 419, 503])
    this.lingerMs = random.chance(0.9) ? 0 : random.pick([100, 6_000])
  }

  get wants(): ModesPlan {
    return this.modes ?? { headers: true, body: bodyModes.fullDuplex, trailers: true }
  }

  /** Called when a call begins. One whose connection is lost before any answer has arrived is made again. */
  begin(isSlow: boolean): string | undefined {
    this.isSlow = isSlow
    if (this.calls++ === 0) return undefined
    if (this.calls > 2 || !this.hasFailed) return `call ${this.calls} of an exchange`
    this.ending = undefined
    // Its answers were lost with the connection.
    this.answered.clear()
    this.returned.request.length = 0
    this.received.request.length = 0
    this.isReset = false
    return undefined
  }

  end(ending: Ending, now: number): void {
    if (this.ending !== undefined) return
    this.ending = ending
    this.endedAt = now
  }

  /** Whether the gateway may take the conversation for failed. */
  get hasFailed(): boolean {
    return this.ending === 'failed' || this.ending === 'lost' || this.isRefusalLost
  }

  /** Whether it has answered all of the request. */
  get hasRequest(): boolean {
    return this.answered.has('requestHeaders') && this.isWhole('request')
  }

  /** Whether it has answered all that it wants of a response. */
  get hasResponse(): boolean {
    const { headers, body } = this.wants
    const hasHeaders = !headers || this.answered.has('responseHeaders')
    return hasHeaders && (body === bodyModes.none || this.isWhole('response'))
  }

  /** Whether it wants a part of the response. */
  get wantsResponse(): boolean {
    const { headers, body, trailers } = this.wants
    return headers || trailers || body !== bodyModes.none
  }

  /** Whether it has answered any part of the response that binds it to answer the rest. */
  get isBoundToResponse(): boolean {
    const isDuplex = this.wants.body === bodyModes.fullDuplex
    const hasReturned = this.returned.response.length > 0
    return hasReturned || (isDuplex && this.answered.has('responseHeaders'))
  }

  /** Whether it has returned all of a body, or needs none. */
  isWhole(direction: Direction): boolean {
    return this.answered.has(`${direction}Body`) || this.answered.has(`${direction}Trailers`)
  }

  expectedRequest(): Passing {
    return { bytes: Buffer.concat(this.returned.request), isWhole: this.isWhole('request') }
  }

  /** `plain`: the body that the upstream sends. */
  expectedResponse(plain: Buffer): Passing {
    const isAnswered = this.answered.has('responseHeaders') && this.response.replaces
    const isEmpty = plain.length === 0 && this.returned.response.length === 0
    const isUnprocessed = (this.wants.body === bodyModes.none && !isAnswered) || isEmpty
    const isLeft = this.ending === 'over' && this.returned.response.length === 0
    if (isUnprocessed || (isLeft && !this.isWhole('response'))) return whole(plain)
    return { bytes: Buffer.concat(this.returned.response), isWhole: this.isWhole('response') }
  }

  /** Why a response must not pass, of which the client has got the head; undefined if it may. */
  problemOfResponse(respondedAt: number): string | undefined {
    if (this.ending === 'over' && this.hasRequest) return undefined
    if (this.wants.headers) {
      return this.answered.has('responseHeaders') ? undefined : 'was not answered by its processor'
    }
    const isKnown = ![undefined, 'lost'].includes(this.ending) && respondedAt - this.endedAt > 2_000
    return isKnown ? 'passes after its processor has failed' : undefined
  }
}
