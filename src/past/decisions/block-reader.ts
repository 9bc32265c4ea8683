/** Reads one block of decisions. Decisions that share a common part share its objects, too. */
import { fromBinary } from '@bufbuild/protobuf'
import {
  type Attempt,
  type Block,
  BlockSchema,
  type Decision,
  type Note,
  type Plan,
} from '../../../proto/gen/decisions_pb.ts'
import { formatVersion, settingText } from './decision-log.ts'
import type { RecordedAttempt, RecordedDecision, RecordedHeader, RecordedStep } from './record.ts'
import { TimeTexts } from './time-texts.ts'

const none: readonly never[] = []
const noDetails: RecordedDecision['details'] = {}

/** The digest of a field that has none. */
const noDigest = '0'.repeat(16)

/**
 * Yields the decisions of one block.
 * @throws Error if the bytes are not a block, or if it has another version
 */
export function* readBlock(bytes: Uint8Array): Generator<RecordedDecision> {
  const block = fromBinary(BlockSchema, bytes)
  if (block.version !== formatVersion && block.version !== 1) {
    throw new Error(
      `the block has version ${block.version} of the format; this version of Sluice reads 1 and ${formatVersion}`,
    )
  }
  const reader = new BlockReader(block)
  for (const decision of block.decisions) yield reader.read(decision)
}

class BlockReader {
  readonly #block: Block
  readonly #plans: readonly (readonly PlannedStep[])[]
  /** Steps without notes, by the plans and by how far these ran, because most decisions share them. */
  readonly #plainSteps = new Map<string, readonly RecordedStep[]>()
  /** Results for common parts, which many decisions share. */
  readonly #routes = new Map<Decision, RecordedDecision['route']>()
  readonly #headers = new Map<Decision, readonly RecordedHeader[]>()
  readonly #steps = new Map<Decision, readonly RecordedStep[]>()
  readonly #times = new TimeTexts()

  constructor(block: Block) {
    this.#block = block
    this.#plans = block.plans.map((plan) => this.#stepsOf(plan))
  }

  read(decision: Decision): RecordedDecision {
    const { proxy, worker, baseMs, share } = this.#block
    const { id, startedUs, attempts } = decision
    const common = this.#common(decision.commonFields) ?? decision
    const setting = this.#block.setting || (share === undefined ? undefined : settingText(share))
    const weight = this.#weight(decision.weight, common)
    return {
      id,
      ...(decision.isCut && { isCut: true as const }),
      time: this.#times.of(baseMs + Number(startedUs) / 1000),
      proxy,
      worker,
      ...(setting !== undefined && { setting }),
      ...(weight !== 1 && { weight }),
      position: Number(common.position),
      request: this.#request(decision, common),
      route: memoized(this.#routes, common, (part) => this.#route(part)),
      steps: this.#stepsOfDecision(decision.notes, common),
      attempts: attempts.length === 0 ? none : attempts.map((attempt) => this.#attempt(attempt)),
      response: this.#response(decision, common),
      details: this.#details(decision),
    }
  }

  /** @throws Error if the block has no such part */
  #common(number: number): Decision | undefined {
    if (number === 0) return undefined
    const part = this.#block.commons[number - 1]
    if (part === undefined) throw new Error(`the block has no common part ${number}`)
    return part
  }

  /** Blocks without a setting have no weights: requests without an error were recorded with the share of the block. */
  #weight(weight: number, { status, ending }: Decision): number {
    if (weight > 0) return weight
    const { setting, share = 1 } = this.#block
    const isFailure = status === 0 || status >= 400 || this.#text(ending) !== 'complete'
    return setting !== '' || isFailure || share === 0 ? 1 : 1 / share
  }

  #attempt({ endpoint, failure, provider, group }: Attempt): RecordedAttempt {
    const name = this.#text(provider)
    return {
      endpoint: this.#text(endpoint) ?? '',
      failure: this.#text(failure) ?? '',
      ...(name !== undefined && { provider: name, group }),
    }
  }

  #details({ details }: Decision): RecordedDecision['details'] {
    if (details.length === 0) return noDetails
    return Object.fromEntries(
      details.map(({ name, value }) => {
        const read = value.case === 'number' ? value.value : this.#text(value.value ?? 0)
        return [this.#text(name) ?? '', read ?? '']
      }),
    )
  }

  #request(decision: Decision, common: Decision): RecordedDecision['request'] {
    const { method, host, port, httpVersion, isTls } = common
    const fields = this.#common(decision.commonHeaders) ?? decision
    const [path = '', query] = splitOnce(decision.path, '?')
    return {
      method: this.#text(method) ?? '',
      host: this.#text(host) ?? '',
      path,
      ...(query !== undefined && { query }),
      protocol: httpVersion === 20 ? 'HTTP/2' : httpVersion === 10 ? 'HTTP/1.0' : 'HTTP/1.1',
      scheme: isTls ? 'https' : 'http',
      port,
      source: decision.source,
      headers: memoized(this.#headers, fields, (part) => this.#headersOf(part)),
      digestKey: this.#block.digestKey,
    }
  }

  #headersOf({ headerNames, headerDigests, headerValues }: Decision): RecordedHeader[] {
    const digests = Buffer.from(headerDigests).toString('hex')
    const values =
      headerValues.length === 0
        ? undefined
        : new Map(headerValues.map(({ field, value }) => [field, value]))
    return headerNames.map((number, at) => {
      const name = this.#text(number) ?? ''
      const digest = digests.slice(at * 16, at * 16 + 16)
      const hasDigest = digest !== '' && digest !== noDigest
      const value = values?.get(at)
      if (value === undefined) return hasDigest ? { name, digest } : { name }
      return hasDigest ? { name, value, digest } : { name, value }
    })
  }

  #route(decision: Decision): RecordedDecision['route'] {
    const { rule } = decision
    const found: {
      -readonly [K in keyof RecordedDecision['route']]: RecordedDecision['route'][K]
    } = {}
    for (const name of placeTexts) {
      if (name === 'rule') {
        if (rule > 0) found.rule = rule - 1
        continue
      }
      const text = this.#text(decision[name])
      if (text !== undefined) found[name] = text
    }
    return found
  }

  #stepsOfDecision(notes: readonly Note[], common: Decision): readonly RecordedStep[] {
    if (notes.length > 0) return this.#stepsWithNotes(notes, common)
    return memoized(this.#steps, common, (part) => this.#plainStepsOf(part))
  }

  #plainStepsOf(part: Decision): readonly RecordedStep[] {
    const { beforeRouting, afterRouting, answers, ofBackend, isInStep } = part
    const passed = `${part.beforeRoutingPassed} ${part.afterRoutingPassed} ${part.answersPassed} ${part.ofBackendPassed}`
    const key = `${beforeRouting} ${afterRouting} ${answers} ${ofBackend} ${passed} ${isInStep}`
    return memoized(this.#plainSteps, key, () => this.#stepsWithNotes([], part))
  }

  /** Returns the steps that ran in the phases, and then those that ran as a part of the backend. */
  #stepsWithNotes(all: readonly Note[], common: Decision): RecordedStep[] {
    const notes = Map.groupBy(all, ({ step }) => this.#text(step) ?? '')
    const inPhases = this.#inPhases(common).map((step) => {
      const found = notes.get(step.step) ?? []
      const verdict = this.#answersLater(step, found) ? 'answer' : step.verdict
      return { ...step, verdict, notes: found.map(({ text }) => text) }
    })
    for (const { step } of inPhases) notes.delete(step)
    return [...inPhases, ...Array.from(notes, ([step, found]) => this.#partOfBackend(step, found))]
  }

  /** Whether a step that let the request pass has answered it later, as a part of the backend. */
  #answersLater({ config }: Omit<RecordedStep, 'notes'>, notes: readonly Note[]): boolean {
    return notes.some(
      ({ isResponse, plan }) => isResponse && this.#plans[plan - 1]?.[0]?.config === config,
    )
  }

  #inPhases(decision: Decision): Omit<RecordedStep, 'notes'>[] {
    const places = [
      [decision.beforeRouting, decision.beforeRoutingPassed],
      [decision.afterRouting, decision.afterRoutingPassed],
      [decision.answers, decision.answersPassed],
      [decision.ofBackend, decision.ofBackendPassed],
    ] as const
    const ran: Omit<RecordedStep, 'notes'>[] = []
    for (const [number, passed] of places) {
      const plan = this.#plans[number - 1] ?? []
      for (const step of plan.slice(0, passed)) ran.push({ ...step, verdict: 'pass' })
      const last = decision.isInStep ? plan[passed] : undefined
      if (last !== undefined) return [...ran, { ...last, verdict: 'answer' }]
    }
    return ran
  }

  /** Returns a step that ran as a part of the backend. Only its notes show that it ran. */
  #partOfBackend(step: string, notes: readonly Note[]): RecordedStep {
    const plan = notes.find(({ plan }) => plan > 0)?.plan ?? 0
    const { from, config } = this.#plans[plan - 1]?.[0] ?? { from: [], config: '' }
    const verdict = notes.some(({ isResponse }) => isResponse) ? 'answer' : 'pass'
    return { step, from, config, verdict, notes: notes.map(({ text }) => text) }
  }

  #response(decision: Decision, common: Decision): RecordedDecision['response'] {
    const { detail } = decision
    const { status, reason, ending } = common
    const error = this.#text(common.error)
    return {
      status,
      reason: this.#text(reason) ?? '',
      ...(error !== undefined && { error }),
      ...(detail !== '' && { detail }),
      ending: this.#text(ending) ?? '',
      requestBytes: Number(decision.requestBytes),
      responseBytes: Number(decision.responseBytes),
      durationMs: Number(decision.durationUs) / 1000,
    }
  }

  #stepsOf({ steps }: Plan): PlannedStep[] {
    return steps.map(({ name, objects, config }) => ({
      step: this.#text(name) ?? '',
      config: this.#text(config) ?? '',
      from: objects.map((object) => ({ object: this.#text(object) ?? '' })),
    }))
  }

  /** @throws Error if the block has no such text */
  #text(number: number): string | undefined {
    if (number === 0) return undefined
    const text = this.#block.texts[number - 1]
    if (text === undefined) throw new Error(`the block has no text ${number}`)
    return text
  }
}

/** The members of a route, in their order in JSON. */
const placeTexts = [
  'gateway',
  'listener',
  'route',
  'rule',
  'ruleName',
  'backend',
  'endpoint',
] as const

/** Splits a text at the first separator; the second part is undefined if there is none. */
function splitOnce(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

type PlannedStep = Pick<RecordedStep, 'step' | 'from' | 'config'>

function memoized<Key, Value>(map: Map<Key, Value>, key: Key, make: (key: Key) => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make(key)
  map.set(key, made)
  return made
}
