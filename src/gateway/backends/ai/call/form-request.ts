/** Requests with files: which text fields the gateway must know before it sends the request. */
import { type ClientFormat, transcriptOf } from '../../../../engines/messages/format.ts'
import type { KnownFormat } from '../../../../engines/messages/formats/index.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { FormBody } from '../../../../engines/messages/multipart/form-body.ts'
import { plainName } from '../../../../engines/messages/multipart/form-fields.ts'
import { isMultipart } from '../../../../engines/messages/multipart/part-head.ts'
import { type OutgoingRequest, pinnedModel } from '../../../../engines/messages/request/outgoing.ts'
import { allowedModelsOf } from './allowed-models.ts'
import type { ModelCall } from './model-call.ts'

const hasFiles = (format: ClientFormat): boolean =>
  format.operation !== 'chat' && format.hasFiles === true

/** Whether the client sends files with the request. @throws LlmError 415 if the body is compressed */
export function sendsForm({ context }: ModelCall, format: KnownFormat): boolean {
  const { headers } = context.exchange.request
  if (!hasFiles(format) || !isMultipart(headers.get('content-type'))) return false
  const coding = headers.get('content-encoding') ?? 'identity'
  if (coding.toLowerCase() === 'identity') return true
  throw new LlmError(415, 'a multipart body must not be compressed')
}

/** Reads the text fields before the first file. */
export function readForm({ context }: ModelCall): Promise<FormBody> {
  const { request, requestBody } = context.exchange
  return FormBody.read(requestBody, request.headers.getAll('content-type'))
}

/** @throws LlmError 400 if the model decides about the request, but does not come before the first file */
export function needModelFirst(call: ModelCall, sent: string): void {
  if (!(call.clientBody instanceof FormBody) || sent !== '') return
  const reason = reasonForModel(call)
  if (reason === undefined) return
  throw new LlmError(400, `the field model must come before the first file, because ${reason}`)
}

function reasonForModel(call: ModelCall): string | undefined {
  if (allowedModelsOf(call) !== undefined) return 'the API key is limited to certain models'
  if (call.backend?.models !== undefined) return 'the model decides where the request goes'
  return call.settings?.modelAliases && 'the gateway has other names of models'
}

/** @throws LlmError 400 if guards cannot read the format of the response that the client asks for */
export function needGuardable({ policy }: ModelCall, format: ClientFormat, body: JsonObject): void {
  const transcript = transcriptOf(format)
  if (policy?.guardsResponses !== true || transcript === undefined) return
  const asked = body.response_format ?? 'json'
  if (transcript.guardable.some((name) => name === asked)) return
  const names = transcript.guardable.join(', ')
  throw new LlmError(400, `response_format: guards of responses can read only ${names}`)
}

/** Sends the body of a client with the fields of the request to the provider. */
export function sendForm(call: ModelCall, form: FormBody, { body }: OutgoingRequest): void {
  const { context, policy, settings } = call
  const { requestBody } = context.exchange
  const needed = new Set(settings?.defaults?.map(({ field }) => plainName(field)))
  const isPinned = call.config !== undefined && pinnedModel(call.config) !== undefined
  if (!isPinned && reasonForModel(call) !== undefined) needed.add('model')
  if (policy?.guardsResponses === true) needed.add('response_format')
  const isGuarded = policy?.guardsRequests === true
  const rules = isGuarded || needed.size > 0 ? { needed, isGuarded } : undefined
  form.send(requestBody, body, rules)
}
