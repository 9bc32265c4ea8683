/**
 * Writes the record of one request. Texts that decisions share are fields of the block, so all of them are
 * written before the decision begins. Their numbers are kept in fields, so that no object is made.
 */

import { budgetsOf } from '../../../ground/exchange/budgets.ts'
import { notesOf } from '../../../ground/exchange/notes.ts'
import { objectText } from '../../../ground/model/names.ts'
import type { BlockWriter } from '../../../past/decisions/block-writer.ts'
import { CommonFields } from '../../../past/decisions/common-fields.ts'
import {
  attemptFields,
  blockFields,
  decisionFields,
  detailFields,
  noteFields,
} from '../../../past/decisions/fields.ts'
import { SharedText } from '../../../past/decisions/shared-text.ts'
import { principalName } from '../../principal/principal.ts'
import type { CompiledRule } from '../config/rules.ts'
import { type RequestContext, StepProgress } from '../request/request-context.ts'
import { addressText, eachIdentity } from '../telemetry/access-fields.ts'
import type { AccessRecord, VisitField } from '../telemetry/types.ts'
import { planNumber, singlePlanNumber } from './plans.ts'
import type { ReceivedHeaders } from './received-headers.ts'

const versions: { readonly [version: string]: number } = { '1.0': 10, '1.1': 11, '2': 20 }
/** Fields that are left out: an id that is a credential, and a text of the body. */
const leftOut: ReadonlySet<string> = new Set(['mcp.session.id', 'mcp.resource.uri'])

const noSteps: Readonly<StepProgress> = new StepProgress()

export class DecisionWriter {
  readonly #headers: ReceivedHeaders
  readonly #routes = new WeakMap<CompiledRule, string>()
  readonly #method = new SharedText()
  readonly #host = new SharedText()
  readonly #gateway = new SharedText()
  readonly #listener = new SharedText()
  readonly #route = new SharedText()
  readonly #ruleName = new SharedText()
  readonly #backend = new SharedText()
  readonly #endpoint = new SharedText()
  readonly #reason = new SharedText()
  readonly #error = new SharedText()
  readonly #ending = new SharedText()
  readonly #common = new CommonFields()
  #beforeRouting = 0
  #afterRouting = 0
  #directResponses = 0
  #ofBackend = 0
  #hasFindings = false
  /** Pairs of numbers: step and plan of a note. */
  readonly #notes: number[] = []
  /** Four numbers each: endpoint, failure, provider and group of an attempt. */
  readonly #attempts: number[] = []
  readonly #detailNames: number[] = []
  readonly #detailValues: (number | { readonly text: number })[] = []

  constructor(headers: ReceivedHeaders) {
    this.#headers = headers
  }

  /** `path` has no credentials; `startedUs` is relative to the time of the block. */
  write(
    block: BlockWriter,
    context: RequestContext,
    access: AccessRecord,
    path: string,
    startedUs: number,
    weight: number,
  ): void {
    this.#prepareRequest(block, context, access)
    this.#prepareOutcome(block, context, access)
    this.#prepareFindings(block, context, access)
    this.#headers.prepare(context.exchange.receivedFields, block)
    this.#putRequest(context)
    this.#putPlace(context)
    this.#putSteps(context)
    this.#putOutcome(access)
    this.#common.prepare(block)
    const at = block.begin(blockFields.decisions)
    block.text(decisionFields.id, context.requestId ?? '')
    block.sint(decisionFields.startedUs, startedUs)
    block.text(decisionFields.path, path)
    block.text(decisionFields.source, addressText(context.exchange.source))
    block.uint(decisionFields.commonFields, this.#common.number)
    block.uint(decisionFields.commonHeaders, this.#headers.number)
    this.#writeOutcome(block, context, access)
    if (this.#hasFindings) this.#writeFindings(block, context)
    block.flag(decisionFields.isCut, block.isCut || this.#headers.isCut)
    if (weight !== 1) block.double(decisionFields.weight, weight)
    block.end(at)
  }

  #prepareRequest(
    block: BlockWriter,
    { placement, listener }: RequestContext,
    access: AccessRecord,
  ): void {
    this.#method.set(block, access.method)
    this.#host.set(block, access.host)
    this.#gateway.set(block, access.gateway)
    this.#listener.set(block, listener?.place.listener)
    this.#route.set(block, placement && this.#routeOf(placement.rule))
    this.#ruleName.set(block, access.rule)
    this.#backend.set(block, access.backend)
    this.#endpoint.set(block, access.endpoint)
  }

  #routeOf(rule: CompiledRule): string {
    let text = this.#routes.get(rule)
    if (text === undefined) {
      text = objectText(rule.resource.route)
      this.#routes.set(rule, text)
    }
    return text
  }

  #prepareOutcome(block: BlockWriter, context: RequestContext, access: AccessRecord): void {
    this.#reason.set(block, access.reason)
    // The text of a refusal may contain a part of the body, so its detail is recorded in its place.
    const isRefusal = context.error === undefined && context.verdict?.detail !== undefined
    this.#error.set(block, isRefusal ? undefined : access.error)
    this.#ending.set(block, context.exchange.ending)
    const { preRouting, postRouting } = context.steps ?? noSteps
    this.#beforeRouting = planNumber(block, preRouting?.steps)
    this.#afterRouting = planNumber(block, postRouting?.steps)
    this.#directResponses = planNumber(block, postRouting?.directResponses)
    this.#ofBackend = planNumber(block, context.destination?.steps)
  }

  #prepareFindings(block: BlockWriter, context: RequestContext, { record }: AccessRecord): void {
    const notes = notesOf(context.exchange)
    const { failedAttempts } = context
    const { ownIdentity } = context.exchange.learned
    const budgets = budgetsOf(context.exchange)
    const hasDetails =
      record !== undefined ||
      ownIdentity !== undefined ||
      principalName(context.exchange) !== undefined ||
      budgets !== undefined
    this.#hasFindings = notes !== undefined || failedAttempts !== undefined || hasDetails
    if (!this.#hasFindings) return
    const { texts } = blockFields
    this.#notes.length = 0
    this.#attempts.length = 0
    this.#detailNames.length = 0
    this.#detailValues.length = 0
    for (const { step, source } of notes ?? []) {
      this.#notes.push(block.shared(texts, step), singlePlanNumber(block, source?.step))
    }
    for (const { endpoint, failure, provider } of failedAttempts ?? []) {
      const name = provider === undefined ? 0 : block.shared(texts, provider.name)
      const group = provider?.group ?? 0
      this.#attempts.push(block.shared(texts, endpoint), block.shared(texts, failure), name, group)
    }
    const visit: VisitField = (name, value) => {
      if (value === undefined || value === '' || leftOut.has(name)) return
      this.#detailNames.push(block.shared(texts, name))
      const isNumber = typeof value === 'number'
      this.#detailValues.push(isNumber ? value : { text: block.shared(texts, value) })
    }
    record?.eachField(visit)
    eachIdentity(context.exchange, visit)
    budgets?.eachField((name, value) => visit(name, value, false))
  }

  #putRequest({ exchange, position }: RequestContext): void {
    const fields = this.#common
    fields.put(decisionFields.position, position)
    fields.put(decisionFields.method, this.#method.number)
    fields.put(decisionFields.host, this.#host.number)
    fields.put(decisionFields.port, exchange.port)
    fields.put(decisionFields.httpVersion, versions[exchange.request.version] ?? 11)
    fields.put(decisionFields.isTls, exchange.tls === undefined ? 0 : 1)
  }

  #putPlace({ placement }: RequestContext): void {
    const fields = this.#common
    fields.put(decisionFields.gateway, this.#gateway.number)
    fields.put(decisionFields.listener, this.#listener.number)
    fields.put(decisionFields.route, this.#route.number)
    const rule = placement === undefined ? 0 : placement.rule.resource.ruleIndex + 1
    fields.put(decisionFields.rule, rule)
    fields.put(decisionFields.ruleName, this.#ruleName.number)
    fields.put(decisionFields.backend, this.#backend.number)
    fields.put(decisionFields.endpoint, this.#endpoint.number)
  }

  #putSteps({ steps = noSteps }: RequestContext): void {
    const fields = this.#common
    fields.put(decisionFields.beforeRouting, this.#beforeRouting)
    fields.put(decisionFields.beforeRoutingPassed, steps.preRoutingDone)
    fields.put(decisionFields.afterRouting, this.#afterRouting)
    fields.put(decisionFields.afterRoutingPassed, steps.postRoutingDone)
    fields.put(decisionFields.answers, this.#directResponses)
    fields.put(decisionFields.answersPassed, steps.directResponsesDone)
    fields.put(decisionFields.ofBackend, this.#ofBackend)
    fields.put(decisionFields.ofBackendPassed, steps.backendStepsDone)
    fields.put(decisionFields.isInStep, steps.running === undefined ? 0 : 1)
  }

  #putOutcome({ status }: AccessRecord): void {
    const fields = this.#common
    fields.put(decisionFields.reason, this.#reason.number)
    fields.put(decisionFields.error, this.#error.number)
    fields.put(decisionFields.status, status)
    fields.put(decisionFields.ending, this.#ending.number)
  }

  #writeOutcome(
    block: BlockWriter,
    { exchange, verdict }: RequestContext,
    { durationMs }: AccessRecord,
  ): void {
    const detail = verdict?.detail
    if (detail !== undefined) block.text(decisionFields.detail, detail)
    block.uint(decisionFields.requestBytes, exchange.requestBytes)
    block.uint(decisionFields.responseBytes, exchange.responseBytes)
    block.uint(decisionFields.durationUs, Math.round(durationMs * 1000))
  }

  #writeFindings(block: BlockWriter, { exchange }: RequestContext): void {
    const notes = notesOf(exchange) ?? []
    for (let index = 0; index < this.#notes.length; index += 2) {
      const note = notes[index / 2]
      const at = block.begin(decisionFields.notes)
      block.uint(noteFields.step, this.#notes[index] ?? 0)
      block.text(noteFields.text, note?.text ?? '')
      block.uint(noteFields.plan, this.#notes[index + 1] ?? 0)
      block.flag(noteFields.isResponse, note?.source?.isResponse === true)
      block.end(at)
    }
    for (let index = 0; index < this.#attempts.length; index += 4) {
      const at = block.begin(decisionFields.attempts)
      block.uint(attemptFields.endpoint, this.#attempts[index] ?? 0)
      block.uint(attemptFields.failure, this.#attempts[index + 1] ?? 0)
      block.uint(attemptFields.provider, this.#attempts[index + 2] ?? 0)
      block.uint(attemptFields.group, this.#attempts[index + 3] ?? 0)
      block.end(at)
    }
    for (const [index, name] of this.#detailNames.entries()) {
      const at = block.begin(decisionFields.details)
      const value = this.#detailValues[index]
      block.uint(detailFields.name, name)
      if (typeof value === 'number') block.double(detailFields.number, value)
      else block.uint(detailFields.text, value?.text ?? 0)
      block.end(at)
    }
  }
}
