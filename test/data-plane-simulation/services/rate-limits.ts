/** The rate limit service of a world, which counts the requests and the tokens of each exchange. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '../../../proto/gen/called/rate_limit_pb.ts'
import type { Random } from '../../virtual-time/random.ts'
import { type CallHandler, type GrpcCall, randomResetCode } from './grpc-service.ts'
import type { ServiceOwner } from './policy-services.ts'

const answers = [
  ...Array.from({ length: 10 }, () => 'admit' as const),
  'refuse',
  'refuse',
  'error',
  'silence',
  'reset',
  'late',
  // No code, and a code of a later version of the protocol.
  'no code',
  'unknown code',
] as const

/** Domains of the descriptors in requests to the service. */
export const limitDomain = 'simulated'
/** Names of the entries that say whose requests or tokens are counted. */
export const countedEntries = { requests: 'request-of', tokens: 'tokens-of' } as const

const codes = { admit: 1, late: 1, refuse: 2, 'unknown code': 3 } as const

/** What the service is meant to answer about an exchange, and what it has counted. */
export class Counting {
  readonly answer: (typeof answers)[number]
  readonly delayMs: number
  /** Requests that were counted, which is one at most. */
  requests = 0
  /** Tokens of each charge. */
  readonly charges: bigint[] = []
  /** Whether it has sent that the request may pass. */
  hasAdmitted = false

  constructor(random: Random) {
    this.answer = random.pick(answers)
    this.delayMs = this.answer === 'late' ? 3_000 : random.chance(0.6) ? 0 : random.between(0, 300)
  }

  /** Statuses that the client may get in place of a response; undefined if the request may pass. */
  get refusals(): readonly number[] | undefined {
    if (this.answer === 'admit') return this.hasAdmitted ? undefined : [500]
    // Another call may end the connection, so that the answer is lost.
    return this.answer === 'refuse' ? [429, 500] : [500]
  }
}

type Response = MessageInitShape<typeof RateLimitResponseSchema>

/** Handles one call of the method ShouldRateLimit. */
export class LimitCall implements CallHandler {
  readonly #call: GrpcCall
  readonly #owner: ServiceOwner

  constructor(call: GrpcCall, owner: ServiceOwner) {
    this.#call = call
    this.#owner = owner
  }

  onMessage(bytes: Buffer): void {
    const { domain, descriptors } = fromBinary(RateLimitRequestSchema, bytes)
    const [descriptor] = descriptors
    const [entry] = descriptor?.entries ?? []
    const exchange = this.#owner.exchangeOf(entry?.value ?? '')
    const { counting } = exchange ?? {}
    if (exchange === undefined || counting === undefined || descriptors.length !== 1) {
      this.#owner.fail('isolation', `a limit of ${domain} is about no exchange`)
      return
    }
    this.#owner.seen(exchange, 'the rate limit service', bytes)
    const hits = descriptor?.hitsAddend ?? 1n
    const { world, machine } = this.#owner
    world.note(`the rate limit service counts ${hits} for ${entry?.key} ${exchange.tag}`)
    if (entry?.key === countedEntries.tokens) {
      if (hits > 0n) counting.charges.push(hits)
      this.#send({ overallCode: codes.admit })
      return
    }
    counting.requests++
    world.schedule(machine, counting.delayMs, () => this.#answer(counting))
  }

  #answer(counting: Counting): void {
    const call = this.#call
    if (call.isOver) return
    const { random } = this.#owner
    switch (counting.answer) {
      case 'error':
        call.finish(random.pick([13, 14]))
        break
      case 'reset':
        if (random.chance(0.5)) call.reset(randomResetCode(random))
        else call.breakConnection()
        break
      case 'silence':
        break
      case 'no code':
        this.#send({})
        break
      default: {
        const overallCode = codes[counting.answer]
        counting.hasAdmitted = overallCode === codes.admit
        this.#send({ overallCode })
      }
    }
  }

  #send(response: Response): void {
    this.#call.send(toBinary(RateLimitResponseSchema, create(RateLimitResponseSchema, response)))
    this.#call.finish(0)
  }

  onEnd(): void {}

  onLost(): void {}
}
