/**
 * Writes the record of one request. Texts that decisions share are fields of the block, so all of them are
 * written before the decision begins. Their numbers are kept in fields, so that no object is made.
 */

import { budgetsOf } from '../../../ground/exchange/budgets.ts'
import { notesOf } from '../../../ground/exchange/notes.ts'
import { objectText } from '../../../ground/model/names.ts'
import type { BlockWriter } from '../../../past/decisions/block-writer.ts'
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
    const at = block.begin(blockFields.decisions)
    block.text(decisionFields.id, context.requestId ?? '')
    block.sint(decisionFields.startedUs, startedUs)
    block.uint(decisionFields.position, context.position)
    block.text(decisionFields.path, path)
    this.#writeRequest(block, context)
    this.#writePlace(block, context)
    this.#writeSteps(block, context)
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

  #writeRequest(block: BlockWriter, { exchange }: RequestContext): void {
    block.uint(decisionFields.method, this.#method.number)
    block.uint(decisionFields.host, this.#host.number)
    block.text(decisionFields.source, addressText(exchange.source))
    block.uint(decisionFields.port, exchange.port)
    block.uint(decisionFields.httpVersion, versions[exchange.request.version] ?? 11)
    block.flag(decisionFields.isTls, exchange.tls !== undefined)
    this.#headers.write(exchange.receivedFields, block)
  }

  #writePlace(block: BlockWriter, { placement }: RequestContext): void {
    block.uint(decisionFields.gateway, this.#gateway.number)
    block.uint(decisionFields.listener, this.#listener.number)
    block.uint(decisionFields.route, this.#route.number)
    if (placement !== undefined) {
      block.uint(decisionFields.rule, placement.rule.resource.ruleIndex + 1)
    }
    block.uint(decisionFields.ruleName, this.#ruleName.number)
    block.uint(decisionFields.backend, this.#backend.number)
    block.uint(decisionFields.endpoint, this.#endpoint.number)
  }

  #writeSteps(block: BlockWriter, { steps = noSteps }: RequestContext): void {
    block.uint(decisionFields.beforeRouting, this.#beforeRouting)
    block.uint(decisionFields.beforeRoutingPassed, steps.preRoutingDone)
    block.uint(decisionFields.afterRouting, this.#afterRouting)
    block.uint(decisionFields.afterRoutingPassed, steps.postRoutingDone)
    block.uint(decisionFields.answers, this.#directResponses)
    block.uint(decisionFields.answersPassed, steps.directResponsesDone)
    block.uint(decisionFields.ofBackend, this.#ofBackend)
    block.uint(decisionFields.ofBackendPassed, steps.backendStepsDone)
    block.flag(decisionFields.isInStep, steps.running !== undefined)
  }

  #writeOutcome(
    block: BlockWriter,
    { exchange, verdict }: RequestContext,
    { status, durationMs }: AccessRecord,
  ): void {
    block.uint(decisionFields.reason, this.#reason.number)
    block.uint(decisionFields.error, this.#error.number)
    const detail = verdict?.detail
    if (detail !== undefined) block.text(decisionFields.detail, detail)
    block.uint(decisionFields.status, status)
    block.uint(decisionFields.ending, this.#ending.number)
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
