import { fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
  type DeniedHttpResponse,
  type OkHttpResponse,
} from '../../../../proto/gen/called/ext_authz_pb.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import {
  type Callouts,
  type Exchange,
  next,
  type RequestHead,
  type RespondVerdict,
} from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { forResponse } from './authorization.ts'
import {
  type Authorizer,
  failed,
  type Judgement,
  type SentBody,
  ServiceFailure,
  timeoutMs,
} from './authorizer.ts'
import { checkRequest, type RequestStamps } from './check-request.ts'
import type { ExtAuthConfig, GrpcAuthorization } from './config.ts'
import { bindAll, type Named } from './expressions.ts'
import { changeFields, fieldChanges } from './field-changes.ts'

const method = '/envoy.service.auth.v3.Authorization/Check'

/** gRPC status codes that refuse a request: PERMISSION_DENIED and UNAUTHENTICATED. Others mean that the service failed. */
const refusals = new Set([7, 16])

/** Authorization over gRPC: Envoy's external authorization, version 3. */
export class GrpcAuthorizer implements Authorizer<CheckResponse> {
  readonly request: boolean
  readonly response = false
  readonly #config: ExtAuthConfig
  readonly #callouts: Callouts
  readonly #settings: GrpcAuthorization
  readonly #metadata: Named | undefined
  readonly #stamps: RequestStamps

  constructor(
    config: ExtAuthConfig,
    settings: GrpcAuthorization,
    callouts: Callouts,
    stamps: RequestStamps,
  ) {
    this.#config = config
    this.#settings = settings
    this.#callouts = callouts
    this.#metadata = settings.requestMetadata && bindAll(settings.requestMetadata)
    this.#stamps = stamps
    this.request = this.#metadata?.some(({ expression }) => expression.request) === true
  }

  async ask(
    exchange: Exchange,
    body: SentBody | undefined,
  ): Promise<CheckResponse | ServiceFailure> {
    const request = checkRequest(exchange, this.#settings, this.#metadata, body, this.#stamps)
    let response: Uint8Array
    try {
      response = await this.#callouts.grpc({
        target: this.#config.target,
        path: method,
        message: toBinary(CheckRequestSchema, request),
        exchange,
        subtype: 'ExtAuthz',
        timeoutMs,
      })
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return new ServiceFailure(`the service failed: ${error.message}`)
    }
    try {
      return fromBinary(CheckResponseSchema, response)
    } catch {
      return new ServiceFailure('the answer of the service cannot be read')
    }
  }

  judge(exchange: Exchange, answer: CheckResponse): Judgement | ServiceFailure {
    const { status, httpResponse, dynamicMetadata, $unknown } = answer
    const code = status?.code ?? 0
    const isDenied = httpResponse.case === 'deniedResponse'
    if (!isDenied && code !== 0 && !refusals.has(code)) {
      return new ServiceFailure(`the service answered with gRPC status ${code}`)
    }
    if (dynamicMetadata !== undefined) {
      const { learned } = exchange
      learned.extauthz = { ...learned.extauthz, ...(dynamicMetadata as LearnedRecord) }
    }
    if (isDenied) return { verdict: denied(httpResponse.value) }
    if (code !== 0) return { verdict: failed(`the service answered with gRPC status ${code}`) }
    if (httpResponse.case === 'okResponse') return allow(exchange, httpResponse.value)
    // It could be a refusal of a later version of the protocol.
    if ($unknown !== undefined) {
      return { verdict: failed('the answer of the service has unknown fields') }
    }
    return { verdict: next }
  }

  /** Removes nothing, because the policy does not list the headers that the service may set. */
  removeServiceHeaders(): void {}

  withAnswer(exchange: Exchange): Exchange {
    return exchange
  }

  sizeOf(answer: CheckResponse): number {
    return toBinary(CheckResponseSchema, answer).length
  }
}

function allow({ request }: Exchange, ok: OkHttpResponse): Judgement {
  for (const name of ok.headersToRemove) {
    if (!name.startsWith(':') && name.toLowerCase() !== 'host') request.headers.remove(name)
  }
  changeFields(request.headers, fieldChanges(ok.headers))
  changeQuery(request, ok)
  return { verdict: next, forResponse: forResponse(fieldChanges(ok.responseHeadersToAdd)) }
}

/** The response of the service. A status that is not valid in a final response becomes 403. */
function denied({ status, headers, body }: DeniedHttpResponse): RespondVerdict {
  const code = status?.code ?? 0
  const pairs = fieldChanges(headers).map(({ name, value }) => [name, value] as const)
  const sent = code >= 200 && code <= 599 ? code : 403
  return {
    kind: 'respond',
    status: sent,
    headers: pairs,
    body,
    reason: 'ExtAuth',
    detail: `the service denied the request with status ${sent}`,
  }
}

function changeQuery(request: RequestHead, ok: OkHttpResponse): void {
  const { queryParametersToSet: set, queryParametersToRemove: remove } = ok
  if (set.length === 0 && remove.length === 0) return
  const replaced = new Set([...remove, ...set.map(({ key }) => key)])
  const kept = (request.query ?? '').split('&').filter((part) => {
    return part !== '' && !replaced.has(decoded(part.split('=', 1)[0] ?? ''))
  })
  const encode = encodeURIComponent
  for (const { key, value } of set) kept.push(`${encode(key)}=${encode(value)}`)
  request.query = kept.length === 0 ? undefined : kept.join('&')
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
