/** Asks a person before a call is made: the user of the client (elicitation), or a service. */
import { isCelError } from '../../../../../engines/cel/index.ts'
import { showHidden } from '../../../../../ground/base/hidden-characters.ts'
import { isObject } from '../../../../../ground/base/json-object.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import { principalName } from '../../../../principal/principal.ts'
import { inputResponsesIn, requestStateIn } from '../../eras/modern-to-legacy.ts'
import { newId } from '../../ids.ts'
import { jsonValue, member, membersOf, rawOf, replace } from '../../json/node.ts'
import { requestText, resultText } from '../../json-rpc.ts'
import { type McpRequest, type McpResponse, readRequest, readResponse } from '../../message.ts'
import type { CallPolicy } from '../../policy/call-policy.ts'
import type { ApprovalConfig } from '../../policy/calls-config.ts'
import type { ClientResponse, MessageStream } from '../exchange/message-stream.ts'
import { seenList } from '../target/target-lists.ts'
import type { OnAbandon } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { approvalKey, questionKey } from './approval-question.ts'
import { type ApprovalState, approvalDigest, openApproval, sealApproval } from './approval-state.ts'
import type { LocatedItem } from './located-item.ts'

interface ApprovalParts {
  readonly upstreams: Upstreams
  readonly policy: CallPolicy
  readonly config: ApprovalConfig
  readonly located: LocatedItem
  readonly messageStream: MessageStream
  readonly onAbandon: OnAbandon
  /** Reads the list of tools again if the copy is old. */
  readonly refreshTools: () => Promise<void> | undefined
}

/** `refused` is for the client, `detail` for the record. */
export type ApprovalOutcome =
  | {
      readonly request: McpRequest
      readonly by?: string
      finish?(response: McpResponse): McpResponse
    }
  | { readonly refused: string; readonly detail: string }
  /** The client must ask its user, and then repeat the call. */
  | { readonly asked: ClientResponse }

const notApproved = 'The user did not approve this call, so it was not made.'
const noAnswer = 'Nobody approved this call in time, so it was not made.'
const cannotAsk =
  'This call needs the approval of a person, and the client cannot ask its user (elicitation), so it was not made.'

export class Approval {
  readonly #parts: ApprovalParts

  constructor(parts: ApprovalParts) {
    this.#parts = parts
  }

  /** Returns the approval that a repeated request of a modern client carries; undefined for all other requests. */
  stateOf(request: McpRequest): ApprovalState | undefined {
    const { era, exchange } = this.#parts.upstreams
    const sealed = era === 'modern' ? requestStateIn(request) : undefined
    const secret = sealed === undefined ? undefined : exchange.runtime.sessionKey()
    return sealed === undefined || secret === undefined ? undefined : openApproval(sealed, secret)
  }

  /** Resolves once it is known whether the call is made. */
  async ask(request: McpRequest, state: ApprovalState | undefined): Promise<ApprovalOutcome> {
    if (state !== undefined) return this.#continue(request, state)
    if (!(await this.#isNeeded())) return { request }
    if (this.#parts.config.webhook !== undefined) return this.#askService(request)
    const question = readRequest(this.#question(request))
    if (question === undefined || !this.#parts.upstreams.mayAsk(question)) {
      return { refused: cannotAsk, detail: 'the client cannot ask its user' }
    }
    return this.#parts.upstreams.era === 'modern'
      ? this.#askByResult(request, question)
      : this.#askOnStream(request, question)
  }

  async #isNeeded(): Promise<boolean> {
    const { config, located, policy, refreshTools, upstreams } = this.#parts
    const { entry, item } = located
    if (config.tools.includes(item.name)) return true
    if (policy.needsApproval !== undefined) {
      const result = policy.needsApproval.evaluate(upstreams.exchange.client)
      // A call could evade the approval by making the expression fail.
      if (result === true || (isCelError(result) && result.kind !== 'missing')) return true
    }
    if (config.annotated === undefined) return false
    await refreshTools()
    const hints = seenList(entry, 'tools').hintsOf(item.name)
    // The server does not list the tool, so its annotations are unknown.
    if (hints === undefined) return true
    return config.annotated === 'Destructive' ? hints.isDestructive : !hints.isReadOnly
  }

  #question({ text, params }: McpRequest): string {
    const { entry, item } = this.#parts.located
    const args = member(params, 'arguments')
    const shown = args === undefined ? '' : ` with ${showHidden(short(rawOf(text, args)))}`
    const message = `Allow the call of the tool ${item.name} of ${entry.target.name}${shown}?`
    const asked = { message, requestedSchema: { type: 'object', properties: {} } }
    const id = JSON.stringify(`${questionKey}/${newId()}`)
    return requestText(id, 'elicitation/create', JSON.stringify(asked))
  }

  // --- legacy clients: a request on the stream of the response ---

  async #askOnStream(request: McpRequest, question: McpRequest): Promise<ApprovalOutcome> {
    const { upstreams, messageStream, onAbandon, config } = this.#parts
    const { sessionId, shared } = upstreams.exchange
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const stop = shared.calls.expect(approvalKey(sessionId, question.id), resolve)
    const timer = setTimeout(resolve, config.timeoutMs, undefined)
    timer.unref()
    onAbandon(() => resolve(undefined))
    messageStream.send(question.text)
    const answer = await promise
    stop()
    clearTimeout(timer)
    if (answer === undefined) return { refused: noAnswer, detail: 'no approval in time' }
    const response = readResponse(answer)
    const isAccepted = response?.result !== undefined && accepts(response.text, response.result)
    return isAccepted ? { request, by: 'the user' } : declined
  }

  // --- modern clients: a result that asks, and the same request again ---

  #askByResult(request: McpRequest, question: McpRequest): ApprovalOutcome {
    const expiresAt = Date.now() + this.#parts.config.timeoutMs
    const sealed = this.#seal({ phase: 'asked', id: newId(), call: this.#digest, expiresAt })
    if (sealed === undefined) return { refused: cannotAsk, detail: 'there is no key for states' }
    const { text, method, params } = question
    const asked = params === undefined ? '{}' : rawOf(text, params)
    const requests = `{"${questionKey}":{"method":"${method}","params":${asked}}}`
    const result = `{"resultType":"input_required","inputRequests":${requests},"requestState":"${sealed}"}`
    return { asked: { text: resultText(request.id, result) } }
  }

  #continue(request: McpRequest, state: ApprovalState): ApprovalOutcome {
    if (state.call !== this.#digest) {
      return { refused: notApproved, detail: 'the approval is for another call' }
    }
    if (state.expiresAt < Date.now()) return { refused: noAnswer, detail: 'no approval in time' }
    const { inner } = state
    if (state.phase === 'approved') {
      const added = inner === undefined ? [] : [`"requestState":${inner}`]
      return this.#approved(withoutMembers(request, ['requestState'], added), undefined)
    }
    const answer = inputResponsesIn(request)?.get(questionKey)
    if (answer === undefined || !isAccepted(JSON.parse(answer))) return declined
    if (this.#parts.policy.approvals?.take(1, state.id) === false) {
      return { refused: notApproved, detail: 'the approval was used before' }
    }
    return this.#approved(withoutMembers(request, ['requestState', 'inputResponses']), 'the user')
  }

  /** The server may ask something, too. Then the approval goes along with its state. */
  #approved(request: McpRequest, by: string | undefined): ApprovalOutcome {
    this.#parts.upstreams.replaceRequest?.(request)
    return {
      request,
      ...(by !== undefined && { by }),
      finish: (response) => {
        const type = member(response.result, 'resultType')
        const isAsking = type !== undefined && rawOf(response.text, type) === '"input_required"'
        return isAsking ? this.#withApproval(response) : response
      },
    }
  }

  #withApproval(response: McpResponse): McpResponse {
    const { text, result } = response
    const own = member(result, 'requestState')
    const expiresAt = Date.now() + Math.max(this.#parts.config.timeoutMs, 300_000)
    const inner = own && rawOf(text, own)
    const sealed = this.#seal({
      phase: 'approved',
      id: newId(),
      call: this.#digest,
      expiresAt,
      ...(inner !== undefined && { inner }),
    })
    if (sealed === undefined || result === undefined) return response
    const members = [...membersOf(text, result, ['requestState']), `"requestState":"${sealed}"`]
    return readResponse(replace(text, result, `{${members.join(',')}}`)) ?? response
  }

  #seal(state: ApprovalState): string | undefined {
    const secret = this.#parts.upstreams.exchange.runtime.sessionKey()
    return secret && sealApproval(state, secret)
  }

  get #digest(): string {
    const { located, upstreams } = this.#parts
    const { name, identity } = upstreams.exchange
    const { entry, item, args } = located
    const target = entry.target.name
    return approvalDigest({ backend: name, identity, target, tool: item.name, args })
  }

  // --- a service ---

  async #askService(request: McpRequest): Promise<ApprovalOutcome> {
    const { config, policy, located, upstreams } = this.#parts
    const { webhook, timeoutMs } = config
    const failed = (detail: string) => ({ refused: noAnswer, detail })
    if (webhook === undefined || webhook.type === 'invalid') return failed('there is no service')
    const args = member(request.params, 'arguments')
    const { exchange } = upstreams
    const principal = principalName(exchange.client)
    const call = {
      backend: exchange.name,
      target: located.entry.target.name,
      tool: located.item.name,
      ...(args && { arguments: jsonValue(request.text, args) }),
      ...(principal !== undefined && { principal }),
      ...(exchange.sessionId !== undefined && { session: exchange.sessionId }),
    }
    try {
      const { status, body } = await policy.callouts.http({
        target: webhook,
        path: '/approve',
        method: 'POST',
        headers: [['content-type', 'application/json']],
        body: Buffer.from(JSON.stringify(call)),
        subtype: 'Guardrail',
        timeoutMs,
        maxResponseBytes: 65_536,
      })
      if (status !== 200) return failed(`the service answered ${status}`)
      return readDecision(Buffer.from(body).toString(), request)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      return failed(`the service failed: ${thrown.message}`)
    }
  }
}

const declined: ApprovalOutcome = { refused: notApproved, detail: 'the user has declined' }

/** Anything but `{"approved": true}` refuses the call. */
function readDecision(text: string, request: McpRequest): ApprovalOutcome {
  let decision: unknown
  try {
    decision = JSON.parse(text)
  } catch {
    return { refused: noAnswer, detail: 'the response of the service is not JSON' }
  }
  if (isObject(decision) && decision.approved === true) return { request, by: 'the service' }
  const reason = isObject(decision) && typeof decision.reason === 'string' ? decision.reason : ''
  const refused = reason === '' ? notApproved : `This call was not approved: ${reason}`
  return { refused, detail: 'the service has declined' }
}

const isAccepted = (value: unknown): boolean => isObject(value) && value.action === 'accept'

const accepts = (text: string, result: NonNullable<McpResponse['result']>): boolean =>
  isAccepted(jsonValue(text, result))

function withoutMembers(
  request: McpRequest,
  keys: readonly string[],
  added: readonly string[] = [],
): McpRequest {
  const { text, params } = request
  if (params === undefined) return request
  const members = [...membersOf(text, params, keys), ...added]
  return readRequest(replace(text, params, `{${members.join(',')}}`)) ?? request
}

/** Longest text of arguments that people are shown. */
const maxShown = 2_000

const short = (text: string): string =>
  text.length <= maxShown ? text : `${text.slice(0, maxShown)}… (${text.length} characters)`
