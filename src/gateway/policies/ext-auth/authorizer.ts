import {
  type Exchange,
  type RespondVerdict,
  refuse,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import type { BodyNeeds } from '../../variables/index.ts'
import type { FieldChange } from './field-changes.ts'

/** The part of a request body that the service receives. */
export interface SentBody {
  readonly bytes: Uint8Array
  /** Whether the body has more bytes. */
  readonly isPartial: boolean
}

/** The service could not be asked, or its answer is not a decision. `detail` says why. */
export class ServiceFailure {
  readonly detail: string

  constructor(detail: string) {
    this.detail = detail
  }
}

/** Calls an authorization service over HTTP or gRPC. */
export interface Authorizer<Answer> extends BodyNeeds {
  /** Asks the service. Resolves to a verdict if the policy itself refuses the request. */
  ask(
    exchange: Exchange,
    body: SentBody | undefined,
  ): Promise<Answer | RespondVerdict | ServiceFailure>
  /** Applies an answer, which may be the cached answer to an earlier request. */
  judge(exchange: Exchange, answer: Answer): Judgement | ServiceFailure
  /** Removes what only the service may set from a request that passes without it. */
  removeServiceHeaders(exchange: Exchange): void
  /** Returns the exchange for expressions about the answer. */
  withAnswer(exchange: Exchange, answer: Answer): Exchange
  /** Returns the approximate number of bytes of an answer in memory. */
  sizeOf(answer: Answer): number
}

/** The decision in an answer. `forResponse` has the changes to the response for the client. */
export interface Judgement {
  readonly verdict: Verdict
  readonly forResponse?: readonly FieldChange[]
}

/** Default timeout of the call. A timeout of the backend overrides it. */
export const timeoutMs = 2_000

/** Header that says whether the service gets only a part of the body. */
export const partialBodyName = 'x-envoy-auth-partial-body'

/** Returns the response if the service cannot be reached, or if its refusal cannot be sent to the client. */
export const failed = (detail: string): RespondVerdict =>
  refuse(403, 'ExtAuth', 'external authorization failed', detail)

const tooLarge = (maxBytes: number): RespondVerdict => ({
  ...failed(`the body has more than ${maxBytes} bytes`),
  status: 413,
})

/** Resolves to the body for the service, undefined if none is sent, or a refusal if it is too large. */
export async function bodyFor(
  { requestBody }: Exchange,
  maxBytes: number | undefined,
  allowsPartial: boolean,
): Promise<SentBody | RespondVerdict | undefined> {
  if (maxBytes === undefined) return undefined
  const { length } = requestBody
  if (!allowsPartial && length !== undefined && length > maxBytes) return tooLarge(maxBytes)
  const body = await requestBody.buffer(maxBytes)
  const bytes = body.complete ? body.bytes : body.prefix
  if (body.complete && bytes.length <= maxBytes) return { bytes, isPartial: false }
  if (!allowsPartial) return tooLarge(maxBytes)
  return { bytes: bytes.subarray(0, maxBytes), isPartial: true }
}
