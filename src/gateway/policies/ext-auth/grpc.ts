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
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { type BodyNeeds, bufferBodies } from '../../variables/index.ts'
import { type Authorizer, bodyFor, failed, timeoutMs } from './authorizer.ts'
import { checkRequest, type RequestStamps } from './check-request.ts'
import type { ExtAuthConfig, GrpcAuthorization } from './config.ts'
import { bindAll, type Named } from './expressions.ts'
import { changeFields, type FieldChange, fieldChanges } from './field-changes.ts'

const method = '/envoy.service.auth.v3.Authorization/Check'

/** Authorization over gRPC: Envoy's external authorization, version 3. */
export class GrpcAuthorizer implements Authorizer, BodyNeeds {
  readonly request: boolean
  readonly response = false
  readonly #config: ExtAuthConfig
  readonly #callouts: Callouts
  readonly #settings: GrpcAuthorization
  readonly #metadata: Named | undefined
  /** Key in `extensions` under which changes for the response are stored. */
  readonly extension: string
  readonly #stamps: RequestStamps

  constructor(
    config: ExtAuthConfig,
    settings: GrpcAuthorization,
    callouts: Callouts,
    extension: string,
    stamps: RequestStamps,
  ) {
    this.#config = config
    this.#settings = settings
    this.#callouts = callouts
    this.#metadata = settings.requestMetadata && bindAll(settings.requestMetadata)
    this.extension = extension
    this.#stamps = stamps
    this.request = this.#metadata?.some(({ expression }) => expression.request) === true
  }

  async authorize(exchange: Exchange): Promise<Verdict> {
    const body = await bodyFor(exchange, this.#config.maxBodyBytes)
    if (body !== undefined && 'kind' in body) return body
    await bufferBodies(exchange, this)
    const request = checkRequest(exchange, this.#settings, this.#metadata, body, this.#stamps)
    const response = await this.#ask(exchange, toBinary(CheckRequestSchema, request))
    if (typeof response === 'string') return failed(response)
    return this.#judge(exchange, response)
  }

  /** Resolves to the reason if the service does not answer, or if its answer cannot be decoded. */
  async #ask(exchange: Exchange, message: Uint8Array): Promise<CheckResponse | string> {
    const { target } = this.#config
    const call = {
      target,
      path: method,
      message,
      exchange,
      subtype: 'ExtAuthz',
      timeoutMs,
    } as const
    let response: Uint8Array
    try {
      response = await this.#callouts.grpc(call)
    } catch (error) {
      if (error instanceof GatewayError) return `the service failed: ${error.message}`
      throw error
    }
    try {
      return fromBinary(CheckResponseSchema, response)
    } catch {
      return 'the answer of the service cannot be read'
    }
  }

  /** Applies the stored changes to the response of an allowed request. */
  changeResponse({ extensions, response }: Exchange): void {
    const changes = extensions.get(this.extension) as readonly FieldChange[] | undefined
    if (changes !== undefined && response !== undefined) changeFields(response.headers, changes)
  }

  #judge(exchange: Exchange, answer: CheckResponse): Verdict {
    const { status, httpResponse, dynamicMetadata, $unknown } = answer
    if (dynamicMetadata !== undefined) {
      const { learned } = exchange
      learned.extauthz = { ...learned.extauthz, ...(dynamicMetadata as LearnedRecord) }
    }
    const isDenied = (status?.code ?? 0) !== 0 || httpResponse.case === 'deniedResponse'
    if (isDenied) {
      return httpResponse.case === 'deniedResponse'
        ? denied(httpResponse.value)
        : failed(`the service answered with gRPC status ${status?.code}`)
    }
    if (httpResponse.case === 'okResponse') this.#allow(exchange, httpResponse.value)
    // It could be a refusal of a later version of the protocol.
    else if ($unknown !== undefined) return failed('the answer of the service has unknown fields')
    return next
  }

  #allow(exchange: Exchange, ok: OkHttpResponse): void {
    const { request } = exchange
    for (const name of ok.headersToRemove) {
      if (!name.startsWith(':') && name.toLowerCase() !== 'host') request.headers.remove(name)
    }
    changeFields(request.headers, fieldChanges(ok.headers))
    changeQuery(request, ok)
    // Cookies of the service are added to those of the upstream, not put in their place.
    const forResponse = fieldChanges(ok.responseHeadersToAdd).map((change) =>
      change.name.toLowerCase() === 'set-cookie'
        ? { ...change, action: 'append' as const }
        : change,
    )
    if (forResponse.length > 0) exchange.extensions.set(this.extension, forResponse)
  }
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
