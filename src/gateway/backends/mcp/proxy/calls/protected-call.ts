/** A request for an item of a target with settings for calls: the checks before it, and those of its response. */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../../../../ground/base/canonical.ts'
import { durationText } from '../../../../../ground/base/duration.ts'
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { bufferBodies } from '../../../../variables/index.ts'
import { type McpRequest, readRequest } from '../../message.ts'
import type { CallPolicy } from '../../policy/call-policy.ts'
import { itemText, type McpExchange } from '../exchange/mcp-exchange.ts'
import type { RefusedBy } from '../exchange/mcp-record.ts'
import type { ClientResponse, MessageStream } from '../exchange/message-stream.ts'
import { TargetFailure } from '../target/target-failure.ts'
import type { OnAbandon, ReceivedResponse } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { Approval, type ApprovalOutcome } from './approval.ts'
import { refusedCall } from './call-refusal.ts'
import { isOpen, recordCall } from './circuit-breaker.ts'
import { guardResponse, orRefused, withResponse } from './guard-messages.ts'
import { argumentTexts, placeOfMethod, withTexts } from './guarded-texts.ts'
import { cutResult } from './large-results.ts'
import type { LocatedItem } from './located-item.ts'
import { processItem } from './processed-item.ts'
import { recordedArguments } from './recorded-arguments.ts'
import { repeatedArguments } from './repeated-arguments.ts'
import { runGuards } from './run-guards.ts'
import { type ProcessorChain, processResponse } from './run-processors.ts'

interface CallParts {
  readonly upstreams: Upstreams
  readonly policy: CallPolicy
  readonly located: LocatedItem
  readonly messageStream: MessageStream
  readonly onAbandon: OnAbandon
  /** Reads the list of tools again if the copy is old. */
  readonly refreshTools: () => Promise<void> | undefined
  /** Sends the request to the target, and cancels it after `limitMs` if that is not 0. */
  readonly send: (request: McpRequest, limitMs: number) => Promise<ReceivedResponse>
}

export class ProtectedCall {
  #parts: CallParts

  constructor(parts: CallParts) {
    this.#parts = parts
  }

  get #exchange(): McpExchange {
    return this.#parts.upstreams.exchange
  }

  /** Resolves to the response of the target, or to one of the gateway. Rejects as `send` does. */
  async run(request: McpRequest): Promise<ReceivedResponse | ClientResponse> {
    if (request.method !== 'tools/call') {
      const guarded = await this.#checkArguments(request)
      if (!('kind' in guarded)) return guarded
      return this.#finish(guarded, await this.#parts.send(guarded, 0))
    }
    this.#recordArguments()
    const state = this.#approval?.stateOf(request)
    // A call that returns with an approval was counted before.
    const limited = state?.phase === 'asked' ? undefined : await this.#limit(request)
    if (limited !== undefined) return limited
    const guarded = await this.#checkArguments(request)
    if (!('kind' in guarded)) return guarded
    const outcome = await this.#approval?.ask(guarded, state)
    return outcome === undefined ? this.#callTool(guarded) : this.#afterApproval(guarded, outcome)
  }

  #recordArguments(): void {
    const { policy, located } = this.#parts
    if (policy.config.recordsArguments !== true) return
    this.#exchange.noteArguments(recordedArguments(policy.requestGuards, located.args))
  }

  get #approval(): Approval | undefined {
    const { policy, located, upstreams, messageStream, onAbandon, refreshTools } = this.#parts
    const config = policy.config.approval
    if (config === undefined) return undefined
    return new Approval({
      upstreams,
      policy,
      config,
      located,
      messageStream,
      onAbandon,
      refreshTools,
    })
  }

  async #afterApproval(
    request: McpRequest,
    outcome: ApprovalOutcome,
  ): Promise<ReceivedResponse | ClientResponse> {
    if ('asked' in outcome) {
      this.#note(request, 'the client asks its user for approval')
      return outcome.asked
    }
    if ('refused' in outcome) {
      return this.#refuse(request, 'approval', outcome.refused, `not approved: ${outcome.detail}`)
    }
    if (outcome.by !== undefined) this.#note(request, `approved by ${outcome.by}`)
    const done = await this.#callTool(outcome.request)
    if (!('response' in done) || outcome.finish === undefined) return done
    return { ...done, response: outcome.finish(done.response) }
  }

  async #callTool(request: McpRequest): Promise<ReceivedResponse | ClientResponse> {
    const received = await this.#call(request)
    return 'response' in received ? this.#finish(request, received) : received
  }

  // --- before the call ---

  async #limit(request: McpRequest): Promise<ClientResponse | undefined> {
    const { policy, located } = this.#parts
    if (policy.config.breaker !== undefined && isOpen(located.entry)) {
      const { name } = located.entry.target
      const text = `${name} does not respond at the moment, so this call was not made. Try again later, or go on without it.`
      return this.#refuse(
        request,
        'circuitBreaker',
        text,
        'the target gets no calls after failures',
      )
    }
    const repeated = this.#countRepeats(request)
    if (repeated !== undefined) return repeated
    const refused = await this.#rateLimit()
    if (refused === undefined) return undefined
    const text = refused.limit?.message ?? 'The rate limit could not be checked'
    return this.#refuse(request, 'rateLimit', text, refused.detail ?? refused.reason)
  }

  async #rateLimit(): Promise<RespondVerdict | undefined> {
    const { local, global } = this.#parts.policy
    const { client } = this.#exchange
    if (local?.request === true) await bufferBodies(client, local)
    const admission = local?.admit(client)
    if (admission !== undefined && 'kind' in admission) return admission
    if (global?.counts('requests') !== true) return undefined
    await bufferBodies(client, global)
    const decision = await global.ask(client, 'requests', 1)
    return decision !== undefined && 'kind' in decision ? decision : undefined
  }

  #countRepeats(request: McpRequest): ClientResponse | undefined {
    const { policy, located } = this.#parts
    const { repeats, config } = policy
    if (repeats === undefined || config.repeats === undefined) return undefined
    if (repeats.take(this.#callDigest())) return undefined
    const { calls, unit } = config.repeats
    const often = `${calls} ${calls === 1 ? 'time' : 'times'} in ${unitNames[unit]}`
    const text = `This call was refused: ${located.called} was called with exactly these arguments ${often} already, and would give the same result. Use the result that you have, change the arguments, or try something else.`
    return this.#refuse(request, 'repeats', text, `repeated more than ${often}`)
  }

  /** Digest of the session or credentials, the tool and the arguments. */
  #callDigest(): string {
    const { entry, item, args } = this.#parts.located
    const { sessionId, identity, name } = this.#exchange
    const who = sessionId ?? identity
    const text = canonicalJson([who, name, entry.target.name, item.name, args ?? null])
    return hash('sha256', text, 'base64url')
  }

  /** Returns the request after guards and processors, or the response if one refuses it. */
  async #checkArguments(request: McpRequest): Promise<McpRequest | ClientResponse> {
    const checked = await this.#checkedRequest(request)
    if (!('kind' in checked)) return checked
    const exchange = this.#exchange
    const changes = repeatedArguments(exchange.client.request.headers, request, checked)
    if (changes !== undefined) exchange.changeHeaders(changes)
    return checked
  }

  async #checkedRequest(request: McpRequest): Promise<McpRequest | ClientResponse> {
    const guarded = await this.#guardArguments(request)
    const chain = this.#chain
    if (!('kind' in guarded) || chain === undefined) return guarded
    const { located } = this.#parts
    const processed = await processItem(chain, located, guarded)
    if (!('request' in processed)) return processed
    this.#parts = { ...this.#parts, located: { ...located, args: processed.args } }
    return processed.request
  }

  /** Undefined if there are no processors. */
  get #chain(): ProcessorChain | undefined {
    const { policy, located, upstreams } = this.#parts
    const { processors } = policy
    if (processors.length === 0) return undefined
    const { entry } = located
    const { exchange, era } = upstreams
    return { exchange, era, processors, entry, services: [entry.target.name] }
  }

  /** Returns the request after the guards, or the response if one refuses it. */
  async #guardArguments(request: McpRequest): Promise<McpRequest | ClientResponse> {
    const { requestGuards } = this.#parts.policy
    if (requestGuards.length === 0) return request
    const groups = argumentTexts(request.text, request.params)
    if (groups.length === 0) return request
    const place = placeOfMethod(request.method) ?? 'Arguments'
    const { client } = this.#exchange
    const outcome = await runGuards(requestGuards, groups, 'request', client, place)
    for (const finding of outcome.findings) this.#note(request, finding)
    const { entry } = this.#parts.located
    for (const check of outcome.checks) this.#exchange.noteCheck(entry, check)
    if (outcome.refusal !== undefined) {
      return this.#refuse(request, 'guard', outcome.refusal, outcome.findings.at(-1) ?? '', true)
    }
    if (outcome.texts === undefined) return request
    const { texts } = outcome
    const changed = orRefused(() => readRequest(withTexts(request, groups, texts)))
    if (changed !== undefined) return changed
    return this.#refuse(request, 'guard', 'The request could not be checked', 'equal keys')
  }

  // --- the call ---

  /** Calls the tool. If it does not respond in time, the model gets a result that says so. */
  async #call(request: McpRequest): Promise<ReceivedResponse | ClientResponse> {
    const { policy, located, send } = this.#parts
    const { timeoutMs = 0, breaker } = policy.config
    const record = (isAnswered: boolean) => {
      if (breaker === undefined || !recordCall(located.entry, isAnswered, breaker)) return
      this.#note(request, 'the target gets no more calls for a time')
    }
    try {
      const received = await send(request, timeoutMs)
      record(true)
      return received
    } catch (thrown) {
      record(!isFailure(thrown))
      const isLate = thrown instanceof TargetFailure && thrown.hasTimedOut
      if (timeoutMs === 0 || !isLate) throw thrown
      const text = `The tool did not respond within ${durationText(timeoutMs)}, so the call was cancelled. It may have had an effect.`
      return this.#refuse(request, 'timeout', text, `no response within ${durationText(timeoutMs)}`)
    }
  }

  // --- after the call ---

  async #finish(
    request: McpRequest,
    received: ReceivedResponse,
  ): Promise<ReceivedResponse | ClientResponse> {
    const { policy } = this.#parts
    const { maxResultBytes, truncates } = policy.config
    const isTool = request.method === 'tools/call' && received.response.result !== undefined
    const size =
      isTool && maxResultBytes !== undefined ? Buffer.byteLength(received.response.text) : 0
    if (maxResultBytes !== undefined && size > maxResultBytes && !truncates) {
      const text = `The result was refused: it has ${size} bytes, and at most ${maxResultBytes} are allowed. Ask for less, for example with a filter or a page.`
      return this.#refuse(request, 'size', text, `the result has ${size} bytes`)
    }
    const { upstreams } = this.#parts
    const note = (text: string) => this.#note(request, text)
    const guards = policy.responseGuards
    const entry = this.#parts.located.entry
    const guarded = await guardResponse(upstreams, entry, guards, request, received, note)
    if (!('response' in guarded)) return guarded
    const chain = this.#chain
    const response = chain && (await processResponse(chain, request, guarded.response))
    if (response !== undefined && !('kind' in response)) return response
    const checked = response === undefined ? guarded : { ...guarded, response }
    if (maxResultBytes === undefined || !isTool) return checked
    return this.#cut(request, checked, maxResultBytes)
  }

  #cut(request: McpRequest, received: ReceivedResponse, maxBytes: number): ReceivedResponse {
    const size = Buffer.byteLength(received.response.text)
    if (size <= maxBytes) return received
    this.#note(request, `the result of ${size} bytes was cut`)
    return withResponse(received, cutResult(received.response, size, maxBytes))
  }

  // --- records ---

  #note({ method }: McpRequest, text: string): void {
    const { entry, item } = this.#parts.located
    this.#exchange.noteRefusal(entry, `${method} of ${itemText(item)}: ${text}`, false)
  }

  /** Records a refusal, and returns the response to the client. `detail` is for the record. */
  #refuse(
    request: McpRequest,
    by: RefusedBy,
    message: string,
    detail: string,
    isNoted = false,
  ): ClientResponse {
    const { upstreams, located } = this.#parts
    const text = `${request.method} of ${itemText(located.item)}: ${detail}`
    if (!isNoted) this.#exchange.noteRefusal(located.entry, text)
    this.#exchange.noteRefusedBy(by)
    return refusedCall(request, upstreams.era, message)
  }
}

const unitNames = { Seconds: 'a second', Minutes: 'a minute', Hours: 'an hour' } as const

/** Whether the target could not serve a call. Refusals of the client's request say nothing about its health. */
function isFailure(thrown: unknown): boolean {
  if (!(thrown instanceof TargetFailure)) return true
  const status = thrown.httpResponse?.status
  return status === undefined || status >= 500
}
