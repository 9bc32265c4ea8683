/** Authorization services of a world (`extAuth`), over HTTP and over gRPC. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { CheckRequestSchema, CheckResponseSchema } from '../../../proto/gen/called/ext_authz_pb.ts'
import type { Random } from '../../virtual-time/random.ts'
import type { Exchange } from '../exchange.ts'
import type { Message } from '../http1-reader.ts'
import { type CallHandler, type GrpcCall, randomResetCode } from './grpc-service.ts'
import type { ServiceReply } from './http-service.ts'
import type { ServiceOwner } from './policy-services.ts'

const answers = [
  ...Array.from({ length: 8 }, () => 'allow' as const),
  'deny',
  'deny',
  // A success that allows nothing: 2xx other than 200, a gRPC code other than 0 without a response.
  'unclear',
  'error',
  'silence',
  'reset',
  'cut',
  // What cannot be read: a message of another kind, or of a later version of the protocol.
  'unknown',
  'late',
] as const

export interface AuthorizationPlan {
  readonly answer: (typeof answers)[number]
  readonly delayMs: number
  /** Status of a denial. */
  readonly status: number
}

/** What an authorization service is meant to do with an exchange, and what it has done. */
export class Authorization {
  readonly plan: AuthorizationPlan
  /** Whether it has sent that the request may pass. */
  isAllowed = false
  /** Whether it has sent a denial. */
  isDenied = false
  /** Bodies that it got. */
  readonly bodies: Buffer[] = []

  readonly isOverGrpc: boolean

  constructor(random: Random, isOverGrpc: boolean) {
    this.isOverGrpc = isOverGrpc
    const answer = random.pick(answers)
    const isLate = answer === 'late'
    this.plan = {
      answer,
      delayMs: isLate ? 3_000 : random.chance(0.6) ? 0 : random.between(0, 300),
      status: random.pick([401, 403, 418]),
    }
  }

  /** Statuses that the client may get; undefined if the request may pass. */
  get refusals(): readonly number[] | undefined {
    const { answer, status } = this.plan
    // Another call may end the connection, even after an answer.
    if (answer === 'allow') return this.isAllowed || !this.isOverGrpc ? undefined : [403]
    if (answer !== 'deny' || !this.isDenied) return [403]
    return this.isOverGrpc ? [status, 403] : [status]
  }
}

/** What services set on requests that pass, and clients try to forge. */
export const callerField = 'x-auth-user'

export function authorizeOverHttp(
  message: Message,
  { exchangeOf, random }: ServiceOwner,
): ServiceReply | undefined {
  const exchange = exchangeOf(message.startLine)
  const authorization = exchange?.authorization
  if (exchange === undefined || authorization === undefined) return undefined
  const { plan } = authorization
  const { answer, delayMs } = plan
  authorization.bodies.push(message.body)
  const statuses = { deny: plan.status, unclear: random.pick([201, 204]), error: 503 }
  const status = statuses[answer as keyof typeof statuses] ?? (answer === 'unknown' ? 299 : 200)
  const { tag } = exchange
  return {
    delayMs,
    status,
    fields: [
      [callerField, tag],
      ['x-answered', tag],
    ],
    body: status === 204 ? '' : `${tag} is answered with ${status}`,
    fault: answer === 'silence' || answer === 'reset' || answer === 'cut' ? answer : 'none',
    onSend: () => {
      authorization.isAllowed = status === 200
      authorization.isDenied = answer === 'deny'
    },
  }
}

type Response = MessageInitShape<typeof CheckResponseSchema>

/** Handles one call of the method Check. */
export class GrpcAuthorization implements CallHandler {
  readonly #call: GrpcCall
  readonly #owner: ServiceOwner

  constructor(call: GrpcCall, owner: ServiceOwner) {
    this.#call = call
    this.#owner = owner
  }

  onMessage(bytes: Buffer): void {
    const { attributes } = fromBinary(CheckRequestSchema, bytes)
    const { path = '', body = '', rawBody } = attributes?.request?.http ?? {}
    const exchange = this.#owner.exchangeOf(path)
    const authorization = exchange?.authorization
    if (exchange === undefined || authorization === undefined) {
      this.#owner.fail('isolation', `a check is about no exchange: ${path}`)
      return
    }
    this.#owner.seen(exchange, 'the authorization service', bytes)
    authorization.bodies.push(body === '' ? Buffer.from(rawBody ?? []) : Buffer.from(body))
    const { world, machine } = this.#owner
    world.schedule(machine, authorization.plan.delayMs, () => this.#answer(exchange, authorization))
  }

  #answer({ tag }: Exchange, authorization: Authorization): void {
    const call = this.#call
    if (call.isOver) return
    const { answer, status } = authorization.plan
    const header = { header: { key: callerField, value: tag } }
    switch (answer) {
      case 'allow':
      case 'late':
        authorization.isAllowed = true
        this.#send({ httpResponse: { case: 'okResponse', value: { headers: [header] } } })
        break
      case 'deny': {
        authorization.isDenied = true
        const value = { status: { code: status }, headers: [header], body: `${tag} is denied` }
        this.#send({ httpResponse: { case: 'deniedResponse', value } })
        break
      }
      case 'unclear':
        this.#send({ status: { code: 7, message: tag } })
        break
      case 'unknown':
        // Field 99 of the message, with a text.
        call.send(Buffer.from([0x9a, 0x06, 0x01, 0x41]))
        call.finish(0)
        break
      case 'error':
        call.finish(this.#owner.random.pick([13, 14]))
        break
      case 'cut':
        call.sendBytes(Buffer.from([0, 0, 0, 0, 9, 1]))
        call.finish(0)
        break
      case 'reset':
        if (this.#owner.random.chance(0.5)) call.reset(randomResetCode(this.#owner.random))
        else call.breakConnection()
        break
      case 'silence':
        break
    }
  }

  #send(response: Response): void {
    this.#call.send(toBinary(CheckResponseSchema, create(CheckResponseSchema, response)))
    this.#call.finish(0)
  }

  onEnd(): void {}

  onLost(): void {}
}
